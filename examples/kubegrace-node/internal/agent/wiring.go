package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// prepareTimeout is how long units may take to stop. It is asked of the host in addition to the
// time of the pods.
const prepareTimeout = 4 * time.Second

// podIP returns the address of a pod, for its httpGet hooks.
func podIP(_ context.Context, pod *v1.Pod) (string, error) {
	if pod.Status.PodIP == "" {
		return "", errors.New("the container runtime does not know the address of the pod")
	}
	return pod.Status.PodIP, nil
}

// newTerminator makes the terminator, which stops single pods.
func (a *Agent) newTerminator() error {
	lifecycleMetrics, err := metrics.NewLifecycle(a.registry, metrics.Options{})
	if err != nil {
		return fmt.Errorf("failed to make the metrics of pods: %w", err)
	}
	a.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: hookedRuntime{a.opts.Runtime, a.hooks}, Commands: a.opts.Runtime, Exits: a.opts.Runtime,
		PodIP: podIP, Events: eventLog{a.opts.Logger}, Metrics: lifecycleMetrics, Gates: a.opts.Gates, OnHook: a.onHook,
	})
	return err
}

// onHook records that a hook has run, unless the end of this agent has cut it off.
func (a *Agent) onHook(_ *v1.Pod, c lifecycle.Container, r lifecycle.HookResult) {
	if r.Cause == lifecycle.CauseTerminatorClosed {
		return
	}
	if err := a.hooks.add(c.ID); err != nil {
		a.opts.Logger.Error(err, "If this agent dies, the next one runs this hook again", "container", c.Name)
	}
}

// forgetEnded forgets the pods that have ended, and all hooks: the shutdown is over.
func (a *Agent) forgetEnded() {
	a.kills.forgetEnded()
	if err := a.hooks.forget(); err != nil {
		a.opts.Logger.Error(err, "Failed to forget the hooks of a shutdown that is over")
	}
}

// newKiller makes what stops one pod.
func (a *Agent) newKiller() killer {
	return killer{
		kills: a.kills, runtime: a.opts.Runtime,
		containers: podkiller.New(a.terminator, podkiller.Options{Status: a.opts.Runtime.PodStatus}),
	}
}

// newManager makes the shutdown manager, which drains the node.
func (a *Agent) newManager() error {
	shutdownMetrics, err := metrics.NewShutdown(a.registry, metrics.Options{})
	if err != nil {
		return fmt.Errorf("failed to make the metrics of the shutdown: %w", err)
	}
	opts := shutdown.Options{
		Config: a.opts.Config, Source: a.opts.Source, ListPods: a.listPods, Metrics: shutdownMetrics, Gates: a.opts.Gates,
		Killer:   a.newKiller(),
		StateDir: a.opts.StateDir, RequireStateDir: a.opts.StateDir != "",
		Plan:     plan.Options{Limit: a.opts.Limit, PrepareTimeout: prepareTimeout},
		OnReport: a.onReport,
	}
	if len(a.opts.Units.Units()) > 0 {
		opts.Prepare = a.opts.Units.Stop
	}
	if a.opts.StateDir != "" {
		opts.OnPlan = a.storePlan
	}
	if a.opts.APIServer != nil {
		opts.Reporter, opts.Policy = a.opts.APIServer, a.opts.Policy
		if err := a.registry.Register(a.opts.APIServer.Failures()); err != nil {
			return fmt.Errorf("failed to make the metric of the API server: %w", err)
		}
	}
	a.manager, err = shutdown.NewManager(opts)
	return err
}

// listPods returns the pods that the runtime has, and remembers them for those who ask what runs.
func (a *Agent) listPods(ctx context.Context) ([]*v1.Pod, error) {
	pods, err := a.opts.Runtime.Pods(ctx)
	a.missing.set(ctx, lackRuntime, err)
	if err == nil {
		pods = slices.Clone(pods)
		a.kills.sort(pods) // the report has them in the order of the list
		a.kills.listed(pods)
	}
	return pods, err
}

// storePlan stores the plan of a shutdown, which kubegrace-node report shows with its report.
func (a *Agent) storePlan(_ context.Context, p plan.Plan) {
	if err := view.KeepPlan(a.opts.StateDir, a.document(p).Nodes[0]); err != nil {
		a.opts.Logger.Error(err, "The report of this shutdown will be without its plan")
	}
}

// onReport hands a report to the loop. A cloud that waits for the end of a drain is told.
func (a *Agent) onReport(ctx context.Context, report shutdown.Report) {
	if a.opts.Notice != nil && !report.Cancelled && report.Origin != drainOrigin {
		if err := notice.Acknowledge(ctx, *a.opts.Notice); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			a.opts.Logger.Error(err, "Failed to tell the cloud that this machine is ready")
		}
	}
	select {
	case a.reports <- report:
	case <-a.loopEnded:
	}
}

// schedule returns the buckets of the configuration, or nil if node shutdowns are not
// configured or their feature gate is off.
func (a *Agent) schedule() plan.Schedule {
	if !a.opts.Gates.Enabled(shutdown.GracefulNodeShutdown) {
		return nil
	}
	return a.opts.Config.Schedule(a.opts.Gates.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority))
}

// eventLog writes the events of pods into the log, warnings always and others from verbosity 1 on.
type eventLog struct{ logger klog.Logger }

// Event logs an event.
func (e eventLog) Event(object runtime.Object, eventtype, reason, message string) {
	logger, name := e.logger, ""
	if eventtype != v1.EventTypeWarning {
		logger = logger.V(1)
	}
	switch about := object.(type) {
	case *v1.ObjectReference: // a container
		name = about.Namespace + "/" + about.Name + " " + about.FieldPath
	case *v1.Pod:
		name = about.Namespace + "/" + about.Name
	}
	logger.Info("Event", "object", name, "type", eventtype, "reason", reason, "message", message)
}
