package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
)

var _ apiserver.Observed = observed{}

// keepMirror shows a pod on the API server, until ctx ends or the pod is dropped.
func (a *Agent) keepMirror(ctx context.Context, p *pod) {
	if a.opts.APIServer == nil {
		return
	}
	ctx, forget := context.WithCancel(ctx)
	p.mu.Lock()
	p.forget = forget
	p.mu.Unlock()
	a.keepers.Go(func() {
		defer forget()
		select {
		case <-p.admitted:
			a.opts.APIServer.KeepMirror(ctx, p.spec, observed{a, p})
		case <-ctx.Done():
		}
	})
}

// observed is what the keeper of a mirror sees of a pod.
type observed struct {
	agent *Agent
	pod   *pod
}

// Ending is true from the moment on at which the node shuts down, and for good for a
// pod that was told to stop in a shutdown that was then cancelled.
func (o observed) Ending() bool {
	return o.pod.isTold() || o.agent.manager.ShutdownStatus() != nil
}

// Status is known once the pod has started.
func (o observed) Status(ctx context.Context) (*v1.PodStatus, error) {
	if !o.pod.hasStarted() {
		return nil, nil
	}
	return statusOf(ctx, o.agent.opts.Runtime, o.pod)
}

// Changed is closed at the start of the pod, or when one of its containers has exited or
// was started again.
func (o observed) Changed() <-chan struct{} {
	if !isClosed(o.pod.settled) {
		return o.pod.settled
	}
	return o.pod.nextNews()
}
