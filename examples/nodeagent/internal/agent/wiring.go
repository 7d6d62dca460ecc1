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

// newTerminator wires what stops one pod.
func (a *Agent) newTerminator() error {
	counters, err := metrics.NewLifecycle(a.registry, metrics.Options{})
	if err != nil {
		return fmt.Errorf("failed to make the metrics of pods: %w", err)
	}
	a.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime:  a.opts.Runtime,
		Commands: a.opts.Runtime,
		PodIP:    hostNetwork,
		Exits:    a.opts.Runtime,
		Events:   a.events(),
		Metrics:  counters,
		Gates:    a.opts.Gates,
	})
	return err
}

// newManager wires what drains the node.
func (a *Agent) newManager() error {
	gauges, err := a.newShutdownMetrics()
	if err != nil {
		return err
	}
	reports := a.opts.APIServer != nil
	a.killer = newKiller(a.pods, a.opts.Runtime, a.terminator, reports)
	opts := shutdown.Options{
		Config:   a.opts.Config,
		Pods:     a.podsToStop,
		Killer:   a.killer,
		Source:   a.opts.Source,
		Metrics:  gauges,
		Gates:    a.opts.Gates,
		StateDir: a.opts.StateDir,
		Plan:     plan.Options{Limit: a.opts.Limit},
	}
	if a.opts.StateDir != "" {
		opts.OnPlan = a.storePlan
	}
	if reports {
		opts.Reporter, opts.Policy = a.opts.APIServer, a.opts.Policy
		opts.Events, opts.Node = a.events(), a.opts.APIServer.Node()
	}
	a.manager, err = shutdown.NewManager(opts)
	return err
}

// storePlan keeps the plan of a shutdown, to be shown beside its report.
func (a *Agent) storePlan(_ context.Context, p plan.Plan) {
	if err := api.StorePlan(a.opts.StateDir, api.PlanOf(p)); err != nil {
		a.opts.Logger.Error(err, "The report of this shutdown will be without its plan")
	}
}

// podsToStop are those that a shutdown stops.
func (a *Agent) podsToStop() []*v1.Pod {
	if a.ran.Load() {
		return a.pods.active()
	}
	return a.pods.specs()
}

// events records what happens to pods and to the node.
func (a *Agent) events() events {
	if a.opts.APIServer == nil {
		return events{logger: a.opts.Logger}
	}
	return events{logger: a.opts.Logger, apiServer: a.opts.APIServer}
}

// newShutdownMetrics makes the gauges of the shutdown, which a kubelet has only
// while both of its gates are on.
func (a *Agent) newShutdownMetrics() (*metrics.Shutdown, error) {
	if !a.opts.Gates.Enabled(shutdown.GracefulNodeShutdown) || !a.opts.Gates.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority) {
		return nil, nil
	}
	gauges, err := metrics.NewShutdown(a.registry, metrics.Options{})
	if err != nil {
		return nil, fmt.Errorf("failed to make the metrics of the shutdown: %w", err)
	}
	return gauges, nil
}

// schedule is what the configuration comes to; nil: it switches the feature off.
func (a *Agent) schedule() plan.Schedule {
	if !a.opts.Gates.Enabled(shutdown.GracefulNodeShutdown) {
		return nil
	}
	return a.opts.Config.Schedule(a.opts.Gates.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority))
}
