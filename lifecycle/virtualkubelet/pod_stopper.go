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

// errRunsOn is the error of StopPod for a pod that does not end. The terminator then calls StopPod again.
var errRunsOn = errors.New("the pod still runs")

// StopPod calls Stop until it succeeds, with a pause of PollInterval after a failure. Then it waits until a list of the
// PodRuntime says that the pod has ended, at most until StopTimeoutSlack and 2 min, the margin of the kubelet's CRI client, have
// passed since the timeout. It must not wait longer for a pod that has ignored Stop: only an error makes the terminator soon stop
// the pod again, because the terminator's own wait doubles with each call that has not returned. StopPod returns
//
//   - nil after a list that says that the pod has ended;
//   - ErrContainerNotFound if the provider or the PodRuntime does not know the pod;
//   - the error of the last Stop, and errRunsOn or the cause of ctx, if the pod has not ended in time.
func (s podStopper) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	m := s.pods.find(pod)
	if m == nil {
		return lifecycle.ErrContainerNotFound
	}
	w := m.asWholePod()
	deadline := time.Now().Add(graceperiod.Duration(timeoutSeconds))
	waitUntil := deadline.Add(s.terminatorOptions().StopTimeoutSlack).Add(lifecycle.DefaultGiveUpAfter)
	ctx, cancel := context.WithDeadlineCause(ctx, waitUntil, errRunsOn)
	defer cancel()
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
