package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
)

var _ apiserver.Observed = observed{}

// keepMirror keeps the mirror pod of a pod up to date until ctx ends or the pod is
// dropped.
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

// observed implements [apiserver.Observed] for one pod.
type observed struct {
	agent *Agent
	pod   *pod
}

// Ending is true while the node shuts down, and stays true for a pod that was told to
// stop in a shutdown that was then cancelled.
func (o observed) Ending() bool {
	return o.pod.isTold() || o.agent.manager.ShutdownStatus() != nil
}

// Status returns nil before the pod has started.
func (o observed) Status(ctx context.Context) (*v1.PodStatus, error) {
	if !o.pod.hasStarted() {
		return nil, nil
	}
	return statusOf(ctx, o.agent.opts.Runtime, o.pod)
}

// Changed is closed when the pod has started, and when one of its containers has exited
// or was restarted.
func (o observed) Changed() <-chan struct{} {
	if !isClosed(o.pod.settled) {
		return o.pod.settled
	}
	return o.pod.nextNews()
}
