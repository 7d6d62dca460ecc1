package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// createTimeout bounds [PodRuntime].Create.
const createTimeout = 2 * time.Minute

// wholePod is what runs of a pod of a [PodRuntime]: what the last list says about it. The record's mutex guards the
// fields. poller numbers the lists.
type wholePod struct {
	*record

	createdAt            int           // the number of the last list that had begun when Create succeeded: it may lack the pod
	observedAt           int           // the number of the last list that was passed to observeList
	isListed             bool          // the last list has the pod
	runs                 bool          // the last list has the pod running, or Create has succeeded since
	isMissing            bool          // the last list lacks the running pod; if the next one does too, the pod is lost
	status               *v1.PodStatus // from the last list with the pod; never modified; nil: none
	changed              chan struct{} // closed at the next change
	isStillRunningLogged bool          // by logStillRunning
	oddPhase             v1.PodPhase   // the unknown phase that was logged last; "": the last phase was a known one
}

// observeList updates the pod from a list with this number. listed is nil if the list lacks the pod.
//
//   - A list that lacks the pod does not count if it began before Create had succeeded.
//   - A running pod counts as lost only if two successive lists lack it. The second one is requested at once.
//   - The end of the pod is handled by endIfDone. A pod that runs although its termination is over is stopped again.
func (w *wholePod) observeList(listed *v1.Pod, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if listed == nil && number <= w.createdAt {
		return
	}
	if listed == nil && w.runs && !w.isMissing {
		w.isMissing = true
		w.agent.poller.requestList()
		return
	}
	ran := w.runs
	w.observedAt, w.isMissing = number, false
	w.isListed = listed != nil
	w.runs = w.isListed && !isTerminal(&listed.Status)
	if listed == nil && ran {
		klog.FromContext(w.ctx).Error(nil, "A running pod is missing from two lists of the pod runtime", "pod", w.name)
	}
	if listed != nil {
		w.setStatus(w.withKnownPhase(&listed.Status))
	}
	w.wakeWaiters()
	hasEnded, _ := w.ender.outcome()
	switch {
	case ran && !w.runs:
		w.agent.spawn(w.name, w.endIfDone)
	case w.runs && hasEnded:
		w.agent.spawn(w.name, func() { _ = w.ender.end(w.ctx, nil) }) // fails only after Close
	}
}

// withKnownPhase removes a phase that Kubernetes does not have from a status, and logs it. Without a phase the pod
// counts as running, so that it is not ended by mistake. The caller holds the mutex.
func (w *wholePod) withKnownPhase(status *v1.PodStatus) *v1.PodStatus {
	switch status.Phase {
	case "", v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown:
		w.oddPhase = ""
		return status
	}
	if status.Phase != w.oddPhase {
		w.oddPhase = status.Phase
		klog.FromContext(w.ctx).Error(nil, "Statuses has returned an unknown phase, the pod counts as running", "pod", w.name, "phase", status.Phase)
	}
	status = status.DeepCopy()
	status.Phase = ""
	return status
}

// setStatus sets the status from a list, unless the pod had ended already: a terminal status stays.
func (w *wholePod) setStatus(status *v1.PodStatus) {
	if w.status != nil && (isTerminal(w.status) || reflect.DeepEqual(w.status, status)) {
		return
	}
	w.status = status.DeepCopy()
	if !w.ending.finalizing {
		w.containers.setFromStatus(w.status)
		w.notifier.wake()
	}
}

// wakeWaiters makes all calls of await test their condition again. The caller holds the mutex.
func (w *wholePod) wakeWaiters() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until condition returns true. isTrue is false if ctx ends before that. condition is called with the
// mutex held, at once and after each list.
func (w *wholePod) await(ctx context.Context, condition func() bool) (isTrue bool) {
	for {
		w.mu.Lock()
		isTrue = condition()
		changed := w.changed
		w.mu.Unlock()
		if isTrue {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// awaitList requests a list and waits until the pod has been updated from it, or from a later one. A list in progress
// is not enough, because it may be older than what the caller has just done.
func (w *wholePod) awaitList(ctx context.Context) error {
	number := w.agent.poller.requestList()
	if !w.await(ctx, func() bool { return w.observedAt >= number }) {
		return fmt.Errorf("%w: %w", w.agent.poller.lastFailure(), context.Cause(ctx))
	}
	return nil
}

// isKnown reports whether the pod runtime has, or had, the pod, so that Create must not be called. The caller holds
// the mutex.
func (w *wholePod) isKnown() bool { return w.runs || w.status != nil }

// isTerminal reports whether the phase says that a pod has ended.
func isTerminal(status *v1.PodStatus) bool {
	return status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}

// call calls the PodRuntime with a timeout, and returns its error. It logs the error, at level 1 if it repeats the
// previous one. It does not log an ErrContainerNotFound, or an error after the end of ctx.
func (w *wholePod) call(ctx context.Context, name string, timeout time.Duration, f func(context.Context) error) error {
	lastErr := w.lastError(name)
	err := w.callWithin(ctx, name, timeout, f)
	if err != nil && ctx.Err() == nil && !errors.Is(err, lifecycle.ErrContainerNotFound) {
		level := 0
		if lastErr != nil && lastErr.Error() == err.Error() {
			level = 1
		}
		klog.FromContext(ctx).V(level).Info("Failed to call the pod runtime", "call", name, "pod", w.name, "err", err)
	}
	return err
}

// create calls Create until the pod runtime has the pod. A Create that failed may have created the pod nevertheless,
// so create then pauses, waits for a new list, and calls Create again only if the list lacks the pod. An ErrInvalidInput
// means that the pod can never run: its containers have then ended, and create returns that error. It also returns an
// error if the pod's termination begins or the provider is closed.
func (w *wholePod) create() error {
	isKnown := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.isKnown()
	}
	for pause := backOffFirst; !isKnown(); pause = min(2*pause, backOffMost) {
		err := w.tryCreate()
		switch {
		case err == nil:
			w.setCreateError(nil)
			return nil
		case w.active.Err() != nil:
			return context.Cause(w.active)
		case errdefs.IsInvalidInput(err):
			for _, c := range w.containers.all {
				w.markTerminated(c, notStarted(err))
			}
			return err
		}
		w.setCreateError(err)
		paused, cancel := context.WithTimeout(w.active, pause)
		w.await(paused, w.isKnown) // a list that has the pod ends the pause
		cancel()
		if err := w.awaitList(w.active); err != nil {
			return context.Cause(w.active)
		}
	}
	return nil
}

// setCreateError shows the error of Create in the containers' states, where kubectl describe prints it. Nil removes
// it. A pod that the runtime has a status of, or that terminates, keeps the states that it has.
func (w *wholePod) setCreateError(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status != nil || w.ending.terminating {
		return
	}
	for _, c := range w.containers.all {
		if c.state = (v1.ContainerState{}); err != nil {
			c.state.Waiting = &v1.ContainerStateWaiting{Reason: reasonCreateError, Message: err.Error()}
		}
	}
	w.notifier.wake()
}

// tryCreate calls Create once, when maxStarts allows it. It does so in the terminator's Start, as the start of the
// pod's first container, because Start refuses a pod whose termination has begun. The error is Create's own, or
// that of Start if Create was not called.
func (w *wholePod) tryCreate() error {
	pod := w.podWithStatus()
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = nil, nil // Create may append its own
	annotations := maps.Clone(pod.Annotations)
	var createErr error
	startErr := w.agent.terminator.Start(w.ctx, pod, pod.Spec.Containers[0].Name, func(ctx context.Context) error {
		createErr = w.agent.withStartSlot(ctx, func() error {
			return w.call(ctx, "Create", createTimeout, func(ctx context.Context) error { return w.agent.opts.Pods.Create(ctx, pod) })
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		if createErr == nil {
			w.runs, w.createdAt = true, w.agent.poller.lastBegun()
		}
		w.desired.annotate(annotations, pod.Annotations)
		return createErr
	})
	if createErr != nil {
		return createErr
	}
	return startErr
}

// deleteAtRuntime waits until the pod has ended, and calls Delete until a list lacks the pod, or Delete says that it does
// not exist (ErrContainerNotFound). A new pod may then use the name. It returns false if the provider is closed before
// that.
func (w *wholePod) deleteAtRuntime() (deleted bool) {
	for !isClosed(w.ender.nameFree) {
		if !w.await(w.ctx, func() bool { return !w.runs }) {
			return false
		}
		pod := w.podWithStatus()
		err := w.call(w.ctx, "Delete", callTimeout, func(ctx context.Context) error { return w.agent.opts.Pods.Delete(ctx, pod) })
		if err == nil && w.awaitList(w.ctx) != nil {
			return false
		}
		w.mu.Lock()
		hasVanished := err == nil && !w.isListed
		if errors.Is(err, lifecycle.ErrContainerNotFound) || hasVanished {
			w.ender.freeName()
		}
		w.mu.Unlock()
		if isClosed(w.ender.nameFree) {
			return true
		}
		select {
		case <-time.After(w.agent.opts.PollInterval):
		case <-w.ctx.Done():
			return false
		}
	}
	return true
}

// mayRun reports whether the pod runs.
func (w *wholePod) mayRun() bool { return w.runs }

// incomplete is the same as mayRun: the provider sees only whether the whole pod runs, and restarts no container of
// it.
func (w *wholePod) incomplete() bool { return w.runs }

// write writes the status from the last list into the pod. Conditions and the start time that the list lacks keep
// the pod's values. ended: the final status is being computed, so the phase must be a terminal one. The caller
// holds the mutex.
func (w *wholePod) write(pod *v1.Pod, ended bool) {
	status := &pod.Status
	if w.status != nil {
		conditions, start := status.Conditions, status.StartTime
		w.status.DeepCopyInto(status)
		if len(status.Conditions) == 0 {
			status.Conditions = conditions
		}
		if status.StartTime == nil {
			status.StartTime = start
		}
	}
	w.containers.write(pod, ended)
	switch {
	case w.status == nil || w.status.Phase == "": // the containers decide the phase
	case isTerminal(w.status) == ended:
		status.Phase = w.status.Phase
	case ended: // the pod was lost while its last status was that of a running pod
		status.Phase = v1.PodFailed
	default: // listed as ended, but the termination is not over
		status.Phase = v1.PodRunning
	}
}
