package agent

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// hostNetwork returns the IP of every pod: all pods use the network of the host.
func hostNetwork(context.Context, *v1.Pod) (string, error) { return "127.0.0.1", nil }

// newTerminator makes the terminator, which stops single pods.
func (a *Agent) newTerminator() error {
	lifecycleMetrics, err := metrics.NewLifecycle(a.registry, metrics.Options{})
	if err != nil {
		return fmt.Errorf("failed to make the metrics of pods: %w", err)
	}
	a.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime:  a.opts.Runtime,
		Commands: a.opts.Runtime,
		PodIP:    hostNetwork,
		Exits:    a.opts.Runtime,
		Events:   a.eventRecorder(),
		Metrics:  lifecycleMetrics,
		Gates:    a.opts.Gates,
	})
	return err
}

// newManager makes the shutdown manager, which drains the node.
func (a *Agent) newManager() error {
	shutdownMetrics, err := a.newShutdownMetrics()
	if err != nil {
		return err
	}
	hasAPIServer := a.opts.APIServer != nil
	a.killer = newKiller(a.pods, a.opts.Runtime, a.terminator, hasAPIServer)
	opts := shutdown.Options{
		Config:   a.opts.Config,
		Pods:     shutdown.PodsFunc(a.podsToStop),
		Killer:   a.killer,
		Source:   a.opts.Source,
		Metrics:  shutdownMetrics,
		Gates:    a.opts.Gates,
		StateDir: a.opts.StateDir,
		Plan:     plan.Options{Limit: a.opts.Limit},
	}
	if a.opts.StateDir != "" {
		opts.OnPlan = a.storePlan
	}
	if hasAPIServer {
		opts.Reporter, opts.Policy = a.opts.APIServer, a.opts.Policy
		opts.Events, opts.Node = a.eventRecorder(), a.opts.APIServer.Node()
	}
	a.manager, err = shutdown.NewManager(opts)
	return err
}

// storePlan stores the plan of a shutdown, which nodeagent report shows with its report.
func (a *Agent) storePlan(_ context.Context, p plan.Plan) {
	if err := api.StorePlan(a.opts.StateDir, api.PlanOf(p)); err != nil {
		a.opts.Logger.Error(err, "The report of this shutdown will be without its plan")
	}
}

// podsToStop returns the pods that a shutdown stops: the active ones, or all before Run is
// called.
func (a *Agent) podsToStop() []*v1.Pod {
	if a.runCalled.Load() {
		return a.pods.active()
	}
	return a.pods.specs()
}

func (a *Agent) eventRecorder() eventRecorder {
	if a.opts.APIServer == nil {
		return eventRecorder{logger: a.opts.Logger}
	}
	return eventRecorder{logger: a.opts.Logger, apiServer: a.opts.APIServer}
}

// newShutdownMetrics makes the metrics of the shutdown. It returns nil unless both feature
// gates are on: a kubelet has these metrics only then.
func (a *Agent) newShutdownMetrics() (*metrics.Shutdown, error) {
	if !a.opts.Gates.Enabled(shutdown.GracefulNodeShutdown) || !a.opts.Gates.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority) {
		return nil, nil
	}
	shutdownMetrics, err := metrics.NewShutdown(a.registry, metrics.Options{})
	if err != nil {
		return nil, fmt.Errorf("failed to make the metrics of the shutdown: %w", err)
	}
	return shutdownMetrics, nil
}

// schedule returns the buckets of the configuration, or nil if node shutdowns are not
// configured or their feature gate is off.
func (a *Agent) schedule() plan.Schedule {
	if !a.opts.Gates.Enabled(shutdown.GracefulNodeShutdown) {
		return nil
	}
	return a.opts.Config.Schedule(a.opts.Gates.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority))
}
