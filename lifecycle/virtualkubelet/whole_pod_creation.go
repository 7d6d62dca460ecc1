package virtualkubelet

import (
	"context"
	"maps"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
)

// createTimeout bounds [PodRuntime].Create.
const createTimeout = 2 * time.Minute

// create calls Create until the pod runtime has the pod. A Create that failed may have created the pod nevertheless,
// so create then pauses, waits for a new list, and calls Create again only if the list lacks the pod. An ErrInvalidInput
// means that the pod can never run: its containers have then ended, and create returns that error. It also returns an
// error if the pod's termination begins or the provider is closed.
func (w *wholePod) create() error {
	isKnown := func() bool {
		w.pod.mu.Lock()
		defer w.pod.mu.Unlock()
		return w.isKnown()
	}
	for pause := backOffFirst; !isKnown(); pause = min(2*pause, backOffMost) {
		err := w.tryCreate()
		switch {
		case err == nil:
			w.setCreateError(nil)
			return nil
		case w.pod.active.Err() != nil:
			return context.Cause(w.pod.active)
		case errdefs.IsInvalidInput(err):
			for _, c := range w.pod.containers.all {
				w.pod.markTerminated(c, notStarted(err))
			}
			return err
		}
		w.setCreateError(err)
		paused, cancel := context.WithTimeout(w.pod.active, pause)
		w.await(paused, w.isKnown) // a list that has the pod ends the pause
		cancel()
		if err := w.awaitList(w.pod.active); err != nil {
			return context.Cause(w.pod.active)
		}
	}
	return nil
}

// tryCreate calls Create once, when maxStarts allows it. It does so in the terminator's Start, as the start of the
// pod's first container, because Start refuses a pod whose termination has begun. The error is Create's own, or
// that of Start if Create was not called.
func (w *wholePod) tryCreate() error {
	pod := w.pod.podWithStatus()
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = nil, nil // Create may append its own
	annotations := maps.Clone(pod.Annotations)
	var createErr error
	startErr := w.pod.agent.terminator.Start(w.pod.ctx, pod, pod.Spec.Containers[0].Name, func(ctx context.Context) error {
		createErr = w.pod.agent.withinMaxStarts(ctx, func() error {
			return w.call(ctx, "Create", createTimeout, func(ctx context.Context) error { return w.pod.agent.opts.Pods.Create(ctx, pod) })
		})
		w.pod.mu.Lock()
		defer w.pod.mu.Unlock()
		if createErr == nil {
			w.runs, w.lastListAtCreate = true, w.pod.agent.poller.lastBegun()
		}
		w.pod.desired.annotate(annotations, pod.Annotations)
		return createErr
	})
	if createErr != nil {
		return createErr
	}
	return startErr
}

// setCreateError shows the error of Create in the containers' states, where kubectl describe prints it. Nil removes
// it. A pod that the runtime has a status of, or that terminates, keeps the states that it has.
func (w *wholePod) setCreateError(err error) {
	w.pod.mu.Lock()
	defer w.pod.mu.Unlock()
	if w.status != nil || w.pod.ending.terminating {
		return
	}
	for _, c := range w.pod.containers.all {
		c.state = v1.ContainerState{}
		if err != nil {
			c.state.Waiting = &v1.ContainerStateWaiting{Reason: reasonCreateError, Message: err.Error()}
		}
	}
	w.pod.wake()
}
