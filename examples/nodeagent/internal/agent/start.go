package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// startsAtOnce bounds the pods that are being started at the same time.
const startsAtOnce = 8

// cleanupTimeout bounds the removal of what a failed start has left.
const cleanupTimeout = 30 * time.Second

// errNotWanted is why a pod is not started that was told to stop before its turn came.
var errNotWanted = errors.New("it was told to stop before it was started")

// adopt finds the pods that an earlier life of the agent has left running, where the
// runtime can tell. They are stopped in a shutdown that is under way already.
func (a *Agent) adopt(ctx context.Context) {
	runtime, ok := a.opts.Runtime.(podruntime.Adopter)
	for _, p := range a.pods.list() {
		a.keepMirror(ctx, p)
		if !ok {
			continue
		}
		containers, found, err := runtime.Adopt(ctx, p.spec)
		p.outdated = errors.Is(err, podruntime.ErrChanged) // nobody else knows the pod yet
		if err != nil && !p.outdated {
			klog.FromContext(ctx).Error(err, "Failed to look for a running pod", "pod", klog.KObj(p.spec))
		}
		if found {
			close(p.admitted)
			p.settle(containers, a.exits(containers), nil)
			a.keepContainers(ctx, p)
		}
	}
}

// startPods starts all pods, once it is known whether the host is shutting down:
// a restarted agent must not start what a shutdown has stopped (k/k#122674).
func (a *Agent) startPods(ctx context.Context) {
	defer close(a.started)
	select {
	case <-a.manager.Ready():
	case <-ctx.Done():
	}
	var starts sync.WaitGroup
	slots := make(chan struct{}, startsAtOnce)
	for _, p := range a.pods.list() {
		if isClosed(p.settled) {
			continue // adopted
		}
		slots <- struct{}{}
		starts.Go(func() {
			a.start(ctx, p)
			<-slots
		})
	}
	starts.Wait()
}

// start starts one pod, unless the node shuts down or the agent leaves. The pod
// counts as one that runs before it is admitted: a shutdown that begins after that
// finds it.
func (a *Agent) start(outer context.Context, p *pod) {
	ctx, abandon := context.WithCancelCause(outer)
	defer abandon(nil)
	p.begin(abandon)
	if admission := a.manager.Admit(p.spec); !admission.Admit {
		p.refuse(errors.New(admission.Message))
		return
	}
	if isClosed(p.leaving) {
		p.refuse(errNotWanted)
		return
	}
	if ctx.Err() != nil {
		p.refuse(context.Cause(ctx))
		return
	}
	close(p.admitted)
	containers, err := a.opts.Runtime.StartPod(ctx, p.spec)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to start pod", "pod", klog.KObj(p.spec))
		err = errors.Join(err, a.cleanUp(ctx, p.spec))
	}
	p.settle(containers, a.exits(containers), err)
	if err == nil {
		a.keepContainers(outer, p)
	}
}

// exits are closed once the containers have exited.
func (a *Agent) exits(containers []lifecycle.Container) []<-chan struct{} {
	exits := make([]<-chan struct{}, len(containers))
	for i, c := range containers {
		exits[i] = a.opts.Runtime.Exited(c.ID)
	}
	return exits
}

// cleanUp removes what a failed start has left.
func (a *Agent) cleanUp(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := a.opts.Runtime.StopPod(ctx, pod); err != nil {
		return fmt.Errorf("failed to clean up: %w", err)
	}
	return nil
}
