package agent

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
)

var _ apiserver.Observed = observed{}

// keepMirrors shows the pods on the API server, until ctx ends. Nothing waits for it.
func (a *Agent) keepMirrors(ctx context.Context) {
	if a.opts.APIServer == nil {
		return
	}
	var keepers sync.WaitGroup
	for _, p := range a.pods.all {
		keepers.Go(func() {
			select {
			case <-p.admitted:
				a.opts.APIServer.KeepMirror(ctx, p.spec, observed{a, p})
			case <-ctx.Done():
			}
		})
	}
	keepers.Wait()
}

// observed is what the keeper of a mirror sees of a pod.
type observed struct {
	agent *Agent
	pod   *pod
}

// Ending is true from the moment on at which the node shuts down, and for good for a
// pod that was told to stop in a shutdown that was then cancelled.
func (o observed) Ending() bool {
	told, _ := o.pod.toldAt()
	return !told.IsZero() || o.agent.manager.ShutdownStatus() != nil
}

// Status is known once the pod has started.
func (o observed) Status(ctx context.Context) (*v1.PodStatus, error) {
	if !o.pod.hasStarted() {
		return nil, nil
	}
	return statusOf(ctx, o.agent.opts.Runtime, o.pod)
}

// Changed is closed at the start of the pod, or at the end of one of its containers
// that runs: sooner or later of all of them.
func (o observed) Changed() <-chan struct{} {
	if !isClosed(o.pod.settled) {
		return o.pod.settled
	}
	return o.pod.nextExit()
}
