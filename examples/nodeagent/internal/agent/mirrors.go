package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
)

var _ apiserver.Observed = observed{}

// keepMirror keeps the mirror pod of a pod up to date until ctx ends or removePod is
// called. It does not wait for that.
func (a *Agent) keepMirror(ctx context.Context, p *pod) {
	if a.opts.APIServer == nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	p.mu.Lock()
	p.stopMirror = stop
	p.mu.Unlock()
	a.background.Go(func() {
		defer stop()
		select {
		case <-p.admitted:
			a.opts.APIServer.KeepMirror(ctx, p.spec, observed{a, p})
		case <-ctx.Done():
		}
	})
}

// observed is what a mirror pod shows: one pod of the agent.
type observed struct {
	agent *Agent
	pod   *pod
}

// Ending reports whether the pod was told to stop or the node shuts down. A pod that was
// told to stop stays so when the shutdown is cancelled.
func (o observed) Ending() bool {
	return o.pod.wasToldToStop() || o.agent.manager.ShutdownStatus() != nil
}

// Status returns the status of the pod, or nil before the pod has started.
func (o observed) Status(ctx context.Context) (*v1.PodStatus, error) {
	if !o.pod.hasStarted() {
		return nil, nil
	}
	return statusOf(ctx, o.agent.opts.Runtime, o.pod)
}

// Changed returns a channel that is closed when the start of the pod has ended, or after
// that at the next exit or restart of a container.
func (o observed) Changed() <-chan struct{} {
	if !isClosed(o.pod.startEnded) {
		return o.pod.startEnded
	}
	return o.pod.containersChanged()
}
