package virtualkubelet

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// callMargin is how long after its grace period a pod may be listed before that is logged, besides a
// PollInterval.
const callMargin = 5 * time.Second

// podStopper is the [lifecycle.PodStopper] for a [PodRuntime].
type podStopper struct{ *agent }

// Running waits for a list that begins after the call. A pod that is no longer known has ended.
func (s podStopper) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	r := s.pods.find(pod)
	if r == nil {
		return nil, nil
	}
	w := r.whole()
	if err := w.awaitList(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listed(), nil
}

// StopPod calls Stop until it succeeds, and waits until a list says that the pod has ended.
func (s podStopper) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	r := s.pods.find(pod)
	if r == nil {
		return lifecycle.ErrContainerNotFound
	}
	w, until := r.whole(), time.Now().Add(graceperiod.Duration(timeoutSeconds))
	hasEnded := func() bool { return !w.runs }
	for {
		left := max(int64((time.Until(until)+time.Second-1)/time.Second), 0) // rounded up
		err := w.call(ctx, "Stop", callTimeout, func(ctx context.Context) error { return s.opts.Pods.Stop(ctx, pod.DeepCopy(), left) })
		if errors.Is(err, lifecycle.ErrContainerNotFound) {
			return err
		}
		waitUntil := time.Now().Add(s.opts.PollInterval)
		if err == nil {
			waitUntil = until.Add(callMargin + s.opts.PollInterval)
		}
		waited, cancel := context.WithDeadline(ctx, waitUntil)
		isOver := w.await(waited, hasEnded)
		cancel()
		if err == nil && !isOver && ctx.Err() == nil {
			w.logRunning()
			isOver = w.await(ctx, hasEnded)
		}
		switch {
		case isOver:
			return nil
		case ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// logRunning logs, once, that the pod runs on after Stop.
func (w *wholePod) logRunning() {
	w.mu.Lock()
	isNews := !w.runsOn
	w.runsOn = true
	w.mu.Unlock()
	if isNews {
		klog.FromContext(w.ctx).Info("Stop has returned, but Statuses still has the pod as running after its grace period", "pod", w.name)
	}
}

// listed returns the containers that have not ended or, if none is known, one with the pod's name, so
// that a termination stops the pod. The caller holds the mutex.
func (w *wholePod) listed() (listed []lifecycle.Container) {
	if !w.runs {
		return nil
	}
	_, hasHooks := w.agent.opts.Pods.(lifecycle.CommandRunner)
	for _, c := range w.containers.all {
		if c.state.Terminated == nil {
			listed = append(listed, lifecycle.Container{
				Name: c.spec.Name, ID: string(w.key) + "/" + c.spec.Name, PreStopDone: !hasHooks || !c.running(),
			})
		}
	}
	if len(listed) == 0 {
		listed = []lifecycle.Container{{Name: w.name.Name, ID: string(w.key), PreStopDone: true}}
	}
	return listed
}
