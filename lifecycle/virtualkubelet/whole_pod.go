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

// wholePod is the body of a pod of a [PodRuntime], as of the last list. The record's mutex guards the
// fields.
type wholePod struct {
	*record

	createdAt  int           // the number of the last list that had begun when Create succeeded
	observedAt int           // the number of the last list that was observed
	isListed   bool          // the last list has the pod
	runs       bool          // the last list has the pod running, or Create has succeeded since
	isMissing  bool          // the last list lacks the running pod; the next one decides
	status     *v1.PodStatus // from the last list with the pod; never modified; nil: none
	changed    chan struct{} // closed at the next change
	runsOn     bool          // it was logged that the pod runs on after Stop
	oddPhase   v1.PodPhase   // the last phase that is none; "": there was none
}

// observe updates the pod from a list; listed is nil if the list lacks it. A running pod is lost only
// if two successive lists lack it.
func (w *wholePod) observe(listed *v1.Pod, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if listed == nil && number <= w.createdAt {
		return // the list is older than the pod
	}
	if listed == nil && w.runs && !w.isMissing {
		w.isMissing = true
		w.agent.poller.request()
		return
	}
	ran := w.runs
	w.observedAt, w.isMissing, w.isListed, w.runs = number, false, listed != nil, listed != nil && !isTerminal(&listed.Status)
	if listed == nil && ran {
		klog.FromContext(w.ctx).Error(nil, "A running pod is missing from two lists of the pod runtime", "pod", w.name)
	}
	if listed != nil {
		w.setStatus(w.withKnownPhase(&listed.Status))
	}
	w.wake()
	hasEnded, _ := w.ender.outcome()
	switch {
	case ran && !w.runs:
		w.agent.spawn(w.name, w.endIfDone)
	case w.runs && hasEnded: // the pod runs after its termination
		w.agent.spawn(w.name, func() { _ = w.ender.end(w.ctx, nil) }) // fails only after Close
	}
}

// withKnownPhase returns a status without a phase that is none of Kubernetes', which is logged. The caller
// holds the mutex.
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

// setStatus sets the status from a list, unless the pod has ended before.
func (w *wholePod) setStatus(status *v1.PodStatus) {
	if w.status != nil && (isTerminal(w.status) || reflect.DeepEqual(w.status, status)) {
		return
	}
	w.status = status.DeepCopy()
	if !w.ending.finalizing {
		w.containers.observe(w.status)
		w.notifier.wake()
	}
}

// wake wakes all calls of await. The caller holds the mutex.
func (w *wholePod) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until isTrue returns true, and returns false if ctx ends first. isTrue is called with the
// mutex held.
func (w *wholePod) await(ctx context.Context, isTrue func() bool) bool {
	for {
		w.mu.Lock()
		is, changed := isTrue(), w.changed
		w.mu.Unlock()
		if is {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// awaitList requests a list and waits until the pod has observed it, or a later one. A list that is
// already in progress is not enough.
func (w *wholePod) awaitList(ctx context.Context) error {
	number := w.agent.poller.request()
	if !w.await(ctx, func() bool { return w.observedAt >= number }) {
		return fmt.Errorf("%w: %w", w.agent.poller.lastFailure(), context.Cause(ctx))
	}
	return nil
}

// isKnown reports whether the pod runtime has, or had, the pod.
func (w *wholePod) isKnown() bool { return w.runs || w.status != nil }

func isTerminal(status *v1.PodStatus) bool {
	return status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}

// call calls the PodRuntime with a timeout, and logs an error.
func (w *wholePod) call(ctx context.Context, name string, timeout time.Duration, f func(context.Context) error) error {
	before := w.lastError(name)
	err := w.bounded(ctx, name, timeout, f)
	if err != nil && ctx.Err() == nil && !errors.Is(err, lifecycle.ErrContainerNotFound) {
		level := 0
		if before != nil && before.Error() == err.Error() {
			level = 1
		}
		klog.FromContext(ctx).V(level).Info("Failed to call the pod runtime", "call", name, "pod", w.name, "err", err)
	}
	return err
}

// create calls Create unless a list has the pod. After a failure it waits for a list, and calls Create
// again if that lacks the pod.
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
		w.await(paused, w.isKnown)
		cancel()
		if err := w.awaitList(w.active); err != nil {
			return context.Cause(w.active)
		}
	}
	return nil
}

// setCreateError writes the error of Create into the containers' states; nil clears it.
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

// tryCreate calls Create once, unless the pod's termination has begun.
func (w *wholePod) tryCreate() error {
	pod := w.view()
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = nil, nil // Create may append its own
	given := maps.Clone(pod.Annotations)
	var failed error
	err := w.agent.terminator.Start(w.ctx, pod, pod.Spec.Containers[0].Name, func(ctx context.Context) error {
		failed = w.agent.withStartSlot(ctx, func() error {
			return w.call(ctx, "Create", createTimeout, func(ctx context.Context) error { return w.agent.opts.Pods.Create(ctx, pod) })
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		if failed == nil {
			w.runs, w.createdAt = true, w.agent.poller.newest()
		}
		w.desired.annotate(given, pod.Annotations)
		return failed
	})
	if failed != nil {
		return failed
	}
	return err
}

// deleteAtRuntime calls Delete until a list lacks the pod. It returns false if the provider is closed
// first.
func (w *wholePod) deleteAtRuntime() bool {
	for !isClosed(w.ender.nameFree) {
		if !w.await(w.ctx, func() bool { return !w.runs }) {
			return false
		}
		pod := w.view()
		err := w.call(w.ctx, "Delete", callTimeout, func(ctx context.Context) error { return w.agent.opts.Pods.Delete(ctx, pod) })
		if err == nil && w.awaitList(w.ctx) != nil {
			return false
		}
		w.mu.Lock()
		if errors.Is(err, lifecycle.ErrContainerNotFound) || err == nil && !w.isListed {
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

func (w *wholePod) mayRun() bool { return w.runs }

func (w *wholePod) incomplete() bool { return w.runs }

// write writes the status of the pod. The caller holds the mutex.
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
	case w.status == nil || w.status.Phase == "":
	case isTerminal(w.status) == ended:
		status.Phase = w.status.Phase
	case ended: // the pod was lost
		status.Phase = v1.PodFailed
	default:
		status.Phase = v1.PodRunning
	}
}
