package virtualkubelet

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// podStopper is the [lifecycle.PodStopper] for a [PodRuntime]. All pods are wholePods, because a PodRuntime reports and stops whole
// pods, not their containers.
type podStopper struct{ *Provider }

// Running returns the containers of the pod that run, from a list that begins after the call: an older one
// may not show what has happened since. A pod that is no longer known has ended.
func (s podStopper) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	m := s.pods.find(pod)
	if m == nil {
		return nil, nil
	}
	w := m.asWholePod()
	if err := w.awaitList(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runningContainers(), nil
}

// StopPod calls Stop until it succeeds, with a pause of PollInterval after a failure. Then it waits until a list of the
// PodRuntime says that the pod has ended. It returns
//
//   - nil after a list that says that the pod has ended;
//   - ErrContainerNotFound if the provider or the PodRuntime does not know the pod;
//   - the errors of Stop and ctx if ctx ends first.
func (s podStopper) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	m := s.pods.find(pod)
	if m == nil {
		return lifecycle.ErrContainerNotFound
	}
	w := m.asWholePod()
	deadline := time.Now().Add(graceperiod.Duration(timeoutSeconds))
	for {
		remaining := max(int64((time.Until(deadline)+time.Second-1)/time.Second), 0) // in seconds, rounded up
		isKnown, err := w.callRuntime(ctx, "Stop", func(ctx context.Context) error { return s.opts.Pods.Stop(ctx, pod.DeepCopy(), remaining) })
		if !isKnown {
			return lifecycle.ErrContainerNotFound
		}
		limit := noLimit
		if err != nil { // wait only until Stop is called again
			limit = s.opts.PollInterval
		}
		hasEnded := w.awaitEnd(ctx, limit)
		switch {
		case hasEnded:
			return nil
		case ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// runningContainers returns the containers of a running pod that have not ended. If none is known, it returns one
// with the pod's name, because a termination stops the pod only if it has a container. PreStopDone tells the
// termination to run no preStop hook: a container that does not run has none to run, and without a CommandRunner the
// PodRuntime runs all hooks itself. The caller holds the mutex.
func (w *wholePod) runningContainers() (running []lifecycle.Container) {
	if !w.isRunning {
		return nil
	}
	_, runsCommands := w.provider.opts.Pods.(lifecycle.CommandRunner)
	for _, c := range w.all {
		if c.state.Terminated == nil {
			running = append(running, lifecycle.Container{
				Name: c.spec.Name, ID: string(w.key) + "/" + c.spec.Name, PreStopDone: !runsCommands || !c.isRunning(),
			})
		}
	}
	if len(running) == 0 {
		running = []lifecycle.Container{{Name: w.name.Name, ID: string(w.key), PreStopDone: true}}
	}
	return running
}
