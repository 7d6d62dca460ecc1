package virtualkubelet

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// podStopper stops the pods of a [PodRuntime]. It is a [lifecycle.PodStopper].
type podStopper struct{ *agent }

// Running asks what runs of a pod: a list of all pods that begins after the call. A pod that is not
// known any more has ended.
func (s podStopper) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	r := s.pods.find(pod)
	if r == nil {
		return nil, nil
	}
	w := r.whole()
	if err := w.ask(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listed(), nil
}

// StopPod calls Stop until the pod runtime has taken it, and waits until a list says that nothing of
// the pod runs any more.
func (s podStopper) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	r := s.pods.find(pod)
	if r == nil {
		return lifecycle.ErrContainerNotFound
	}
	w, until := r.whole(), time.Now().Add(graceperiod.Duration(timeoutSeconds))
	hasEnded := func() bool { return !w.runs }
	for {
		left := max(int64((time.Until(until)+time.Second-1)/time.Second), 0) // rounded up: a moment has passed
		err := w.call(ctx, "Stop", callTimeout, func(ctx context.Context) error { return s.opts.Pods.Stop(ctx, pod.DeepCopy(), left) })
		if errors.Is(err, lifecycle.ErrContainerNotFound) {
			return err
		}
		waited, cancel := ctx, context.CancelFunc(func() {})
		if err != nil {
			waited, cancel = context.WithTimeout(ctx, s.opts.PollInterval)
		}
		isOver := w.await(waited, hasEnded)
		cancel()
		switch {
		case isOver:
			return nil
		case ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// listed returns what a termination has to stop: the containers that have not ended, or a container
// with the name of the pod. The mutex is held.
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
	if len(listed) == 0 { // it is not known what runs of the pod
		listed = []lifecycle.Container{{Name: w.name.Name, ID: string(w.key), PreStopDone: true}}
	}
	return listed
}
