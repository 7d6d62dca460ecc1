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

// maxParallelStarts is how many pods are started at the same time.
const maxParallelStarts = 8

// cleanupTimeout bounds the removal of what a failed start has made.
const cleanupTimeout = 30 * time.Second

// errStoppedBeforeStart is the problem of a pod that was told to stop before it was
// started.
var errStoppedBeforeStart = errors.New("it was told to stop before it was started")

// adoptPods finds the pods that a former agent of this node has left running, if the
// runtime is a [podruntime.Adopter]. A shutdown that is under way stops them.
func (a *Agent) adoptPods(ctx context.Context) {
	adopter, ok := a.opts.Runtime.(podruntime.Adopter)
	for _, p := range a.pods.list() {
		a.keepMirror(ctx, p)
		if !ok {
			continue
		}
		containers, found, err := adopter.Adopt(ctx, p.spec)
		p.outdated = errors.Is(err, podruntime.ErrChanged) // no other goroutine knows the pod yet
		if err != nil && !p.outdated {
			klog.FromContext(ctx).Error(err, "Failed to look for a running pod", "pod", klog.KObj(p.spec))
		}
		if found {
			close(p.admitted)
			p.endStart(containers, a.exitedChannels(containers), nil)
			a.restarter.watch(ctx, p)
		}
	}
}

// startPods starts all pods, and returns when each start has ended. It first waits until
// it is known whether the host is shutting down: a restarted agent must not start what a
// shutdown has stopped (k/k#122674).
func (a *Agent) startPods(ctx context.Context) {
	defer close(a.startsDone)
	select {
	case <-a.manager.Ready():
	case <-ctx.Done():
	}
	var starts sync.WaitGroup
	slots := make(chan struct{}, maxParallelStarts)
	for _, p := range a.pods.list() {
		if isClosed(p.startEnded) {
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

// start starts one pod, unless the node shuts down or the agent leaves. The pod is active
// before it asks for admission, so that a shutdown that begins after the admission stops
// it.
func (a *Agent) start(agentCtx context.Context, p *pod) {
	ctx, cancel := context.WithCancelCause(agentCtx)
	defer cancel(nil)
	p.beginStart(cancel)
	if admission := a.manager.Admit(p.spec); !admission.Admit {
		p.refuseStart(errors.New(admission.Message))
		return
	}
	if isClosed(p.stopRequested) {
		p.refuseStart(errStoppedBeforeStart)
		return
	}
	if ctx.Err() != nil {
		p.refuseStart(context.Cause(ctx))
		return
	}
	close(p.admitted)
	containers, err := a.opts.Runtime.StartPod(ctx, p.spec)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to start pod", "pod", klog.KObj(p.spec))
		err = errors.Join(err, a.cleanUp(ctx, p.spec))
	}
	p.endStart(containers, a.exitedChannels(containers), err)
	if err == nil {
		a.restarter.watch(agentCtx, p)
	}
}

// exitedChannels returns for each container a channel that is closed when it has exited.
func (a *Agent) exitedChannels(containers []lifecycle.Container) []<-chan struct{} {
	exited := make([]<-chan struct{}, len(containers))
	for i, c := range containers {
		exited[i] = a.opts.Runtime.Exited(c.ID)
	}
	return exited
}

// cleanUp removes what a failed start has made.
func (a *Agent) cleanUp(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := a.opts.Runtime.StopPod(ctx, pod); err != nil {
		return fmt.Errorf("failed to clean up: %w", err)
	}
	return nil
}
