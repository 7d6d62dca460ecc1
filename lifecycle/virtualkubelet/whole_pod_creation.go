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

// start calls Create until the pod runtime has the pod. A Create that failed may have created the pod nevertheless,
// so start then pauses, waits for a new list, and calls Create again only if the list lacks the pod. An ErrInvalidInput
// means that the pod can never run: its containers have then ended, and start returns that error. It also returns an
// error if the pod's termination begins or the provider is closed.
func (w *wholePod) start() error {
	for pause := backOffFirst; !w.isCreated(); pause = min(2*pause, backOffMost) {
		err := w.tryCreate()
		switch {
		case err == nil:
			w.setCreateError(nil)
			return nil
		case w.startsAllowed.Err() != nil:
			return context.Cause(w.startsAllowed)
		case errdefs.IsInvalidInput(err):
			w.failContainers(err)
			return err
		}
		w.setCreateError(err)
		paused, cancel := context.WithTimeout(w.startsAllowed, pause)
		w.await(paused, w.wasStarted) // a list that has the pod ends the pause
		cancel()
		if err := w.awaitList(w.startsAllowed); err != nil {
			return context.Cause(w.startsAllowed)
		}
	}
	return nil
}

// isCreated reports whether the pod runtime has, or had, the pod.
func (w *wholePod) isCreated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wasStarted()
}

// failContainers marks the containers of a pod as terminated, because the pod can never run. Unlike the ends that markTerminated sets,
// these are not final: if the pod runtime has the pod nevertheless, its next list replaces them.
func (w *wholePod) failContainers(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.all {
		if c.state.Terminated == nil {
			c.state = v1.ContainerState{Terminated: c.endedWith(notStarted(err))}
		}
	}
	w.wakeSender()
}

// tryCreate calls Create once, as soon as fewer than maxStarts starts are in progress. It does so in the terminator's Start, as
// the start of the pod's last container, because Start refuses a pod whose termination has begun. The error is Create's own,
// or that of Start if Create was not called.
func (w *wholePod) tryCreate() error {
	pod := w.podWithStatus()
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = nil, nil // Create may append its own
	before := maps.Clone(pod.Annotations)
	var createErr error
	startErr := w.provider.terminator.Start(w.ctx, pod, w.all[len(w.all)-1].spec.Name, func(ctx context.Context) error {
		createErr = w.provider.withinMaxStarts(ctx, func() error {
			return w.callWithin(ctx, "Create", createTimeout, func(ctx context.Context) error { return w.provider.opts.Pods.Create(ctx, pod) })
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		if createErr == nil {
			w.isRunning, w.lastListAtCreate = true, w.provider.poller.lastBegun()
		}
		w.desired.keepAnnotations(before, pod.Annotations)
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status != nil || w.ending.terminating {
		return
	}
	for _, c := range w.all {
		c.state = v1.ContainerState{}
		if err != nil {
			c.state.Waiting = &v1.ContainerStateWaiting{Reason: reasonCreateError, Message: err.Error()}
		}
	}
	w.wakeSender()
}
