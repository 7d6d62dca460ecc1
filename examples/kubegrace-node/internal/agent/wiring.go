package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// prepareTimeout is how long the units of --stop-unit may take to stop, before the first pod. The agent asks
// the host for this time in addition to that of the pods.
const prepareTimeout = 4 * time.Second

// podIP returns the address to which the httpGet hooks of a pod send their requests.
func podIP(_ context.Context, pod *v1.Pod) (string, error) {
	if pod.Status.PodIP == "" {
		return "", errors.New("the container runtime does not know the address of the pod")
	}
	return pod.Status.PodIP, nil
}

// newTerminator makes the terminator, which stops the containers of single pods, and the killer, which stops pods with it.
func (a *Agent) newTerminator() error {
	lifecycleMetrics, err := metrics.NewLifecycle(a.registry, metrics.Options{})
	if err != nil {
		return fmt.Errorf("failed to make the metrics of pods: %w", err)
	}
	a.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: runtimeWithHooks{a.opts.Runtime, a.hooks}, Commands: a.opts.Runtime, Exits: a.opts.Runtime,
		PodIP: podIP, Metrics: lifecycleMetrics, Gates: a.opts.Gates, OnHook: a.onHook,
	})
	a.killer = &killer{Agent: a, containers: podkiller.New(a.terminator, podkiller.Options{Status: a.opts.Runtime.PodStatus}), stopping: map[types.UID]stop{}}
	return err
}

// onHook stores that a preStop hook has run, so that the next agent does not run it again. A hook that was
// cut off because this agent ended is not stored: the next agent runs it from the start.
func (a *Agent) onHook(_ *v1.Pod, c lifecycle.Container, r lifecycle.HookResult) {
	if r.Cause == lifecycle.CauseTerminatorClosed {
		return
	}
	if err := a.hooks.addRun(c.ID); err != nil {
		a.opts.Logger.Error(err, "If this agent dies, the next one runs this hook again", "container", c.Name)
	}
}

// forgetHooks removes what onHook has stored for a shutdown that is over.
func (a *Agent) forgetHooks() {
	if err := a.hooks.remove(); err != nil {
		a.opts.Logger.Error(err, "Failed to forget the hooks of a shutdown that is over")
	}
}

// newManager makes the shutdown manager, which decides when each pod stops. It needs the killer of newTerminator.
func (a *Agent) newManager() error {
	shutdownMetrics, err := metrics.NewShutdown(a.registry, metrics.Options{})
	if err != nil {
		return fmt.Errorf("failed to make the metrics of the shutdown: %w", err)
	}
	opts := shutdown.Options{
		Config: a.opts.Config, Source: a.opts.Source, ListPods: a.listPods, Metrics: shutdownMetrics, Gates: a.opts.Gates,
		Killer:   a.killer,
		StateDir: a.opts.StateDir, RequireStateDir: a.opts.StateDir != "",
		Plan:   plan.Options{Limit: a.opts.Limit, PrepareTimeout: prepareTimeout},
		OnPlan: a.onPlan, OnReport: a.onReport,
	}
	if len(a.opts.Units.Units()) > 0 {
		opts.Prepare = a.opts.Units.Stop
	}
	if a.opts.APIServer != nil {
		opts.Reporter, opts.Policy = a.opts.APIServer, a.opts.Policy
		a.registry.MustRegister(a.opts.APIServer.Failures())
	}
	a.manager, err = shutdown.NewManager(opts)
	return err
}

// listPods returns the runtime's pods, those of the lowest priority first: they stop in this order, and the report has them in
// this order. It also stores in missingParts whether the runtime has answered.
func (a *Agent) listPods(ctx context.Context) ([]*v1.Pod, error) {
	pods, err := a.opts.Runtime.Pods(ctx)
	a.missingParts.update(ctx, missingRuntime, err)
	byPriority := func(x, y *v1.Pod) int {
		return cmp.Compare(plan.Options{}.Priority(x), plan.Options{}.Priority(y)) // as the manager computes it
	}
	return slices.SortedStableFunc(slices.Values(pods), byPriority), err
}

// onPlan shows that a shutdown begins, and stores its plan: the HTML page of kubegrace-node report shows it beside what has
// happened. It also saves Info, because saveInfo pauses during a shutdown. It removes no pods from Info, because the plan does
// not tell which have ended: it has none if they could not be listed in time. The drain waits neither for onPlan nor for the
// disk.
func (a *Agent) onPlan(ctx context.Context, p plan.Plan) {
	a.opts.View.Begin(p)
	a.missingParts.update(ctx, "state folder", a.opts.Info.Save())
	if err := view.KeepPlan(a.opts.StateDir, a.planDocument(p).Nodes[0]); err != nil {
		a.opts.Logger.Error(err, "The report of this shutdown will be without its plan")
	}
}

// onReport sends the report of a shutdown to the loop. After a complete drain of a host that goes down it
// first tells the cloud, which may then end the machine early. A drain that the end of this agent interrupts is not
// complete: its pods still run, and the next agent continues it.
func (a *Agent) onReport(ctx context.Context, report shutdown.Report) {
	isComplete := !report.Ended.IsZero()
	hostGoesDown := !report.Cancelled && report.Origin != drainOrigin
	if a.opts.Notice != nil && isComplete && hostGoesDown {
		if err := notice.Acknowledge(ctx, *a.opts.Notice); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			a.opts.Logger.Error(err, "Failed to tell the cloud that this machine is ready")
		}
	}
	select {
	case a.reports <- report:
	case <-a.loopEnded:
	}
}
