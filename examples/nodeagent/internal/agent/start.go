package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// startsAtOnce bounds the pods that are being started at the same time.
const startsAtOnce = 8

// cleanupTimeout bounds the removal of what a failed start has left.
const cleanupTimeout = 30 * time.Second

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
	for _, p := range a.pods.all {
		slots <- struct{}{}
		starts.Go(func() {
			a.start(ctx, p)
			<-slots
		})
	}
	starts.Wait()
}

// start starts one pod, unless the agent leaves or the node shuts down.
func (a *Agent) start(ctx context.Context, p *pod) {
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	if !p.begin(abandon) || ctx.Err() != nil {
		p.settle(nil, nil, errors.New("the agent was stopping"))
		return
	}
	if admission := a.manager.Admit(p.spec); !admission.Admit {
		p.settle(nil, nil, errors.New(admission.Message))
		return
	}
	containers, err := a.opts.Runtime.StartPod(ctx, p.spec)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to start pod", "pod", klog.KObj(p.spec))
		err = errors.Join(err, a.cleanUp(ctx, p.spec))
	}
	exits := make([]<-chan struct{}, len(containers))
	for i, c := range containers {
		exits[i] = a.opts.Runtime.Exited(c.ID)
	}
	p.settle(containers, exits, err)
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
