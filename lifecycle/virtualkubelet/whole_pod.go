package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// wholePod is what runs of a pod of a [PodRuntime]: what the last list says about it. The record's mutex guards the
// fields. poller numbers the lists.
type wholePod struct {
	pod *record

	lastListAtCreate int           // the number of the last list that had begun when Create succeeded: it may lack the pod
	lastObservedList int           // the number of the last list that was passed to observeList
	isListed         bool          // the last list has the pod
	runs             bool          // the last list has the pod running, or Create has succeeded since
	isMissing        bool          // the last list lacks the running pod; if the next one does too, the pod is lost
	status           *v1.PodStatus // from the last list with the pod; never modified; nil: none
	changed          chan struct{} // closed at the next change
}

// observeList updates the pod from a list with this number. listed is nil if the list lacks the pod.
//
//   - A list that lacks the pod does not count if it began before Create had succeeded.
//   - A running pod counts as lost only if two successive lists lack it. The second one is requested at once.
//   - If the pod has ended, endIfDone handles that. A pod that runs although its termination has ended is stopped again.
func (w *wholePod) observeList(listed *v1.Pod, number int) {
	w.pod.mu.Lock()
	defer w.pod.mu.Unlock()
	if listed == nil && number <= w.lastListAtCreate {
		return
	}
	if listed == nil && w.runs && !w.isMissing {
		w.isMissing = true
		w.pod.agent.poller.requestList()
		return
	}
	ranBefore := w.runs
	w.lastObservedList, w.isMissing = number, false
	w.isListed = listed != nil
	w.runs = w.isListed && !isTerminal(&listed.Status)
	if listed == nil && ranBefore {
		w.pod.agent.spawn(w.pod.name, func() { // the logger is the embedder's code
			klog.FromContext(w.pod.ctx).Error(nil, "A running pod is missing from two lists of the pod runtime", "pod", w.pod.name)
		})
	}
	if listed != nil {
		w.setStatus(&listed.Status)
	}
	w.wakeWaiters()
	terminationEnded, _ := w.pod.ending.outcome()
	switch {
	case ranBefore && !w.runs:
		w.pod.agent.spawn(w.pod.name, w.pod.endIfDone)
	case w.runs && terminationEnded:
		w.pod.agent.spawn(w.pod.name, func() { _ = w.pod.end(w.pod.ctx, nil) }) // fails only after Close
	}
}

// isKnown reports whether the pod runtime has, or had, the pod, so that Create must not be called. The caller holds
// the mutex.
func (w *wholePod) isKnown() bool { return w.runs || w.status != nil }

// mayRun reports whether the pod runs.
func (w *wholePod) mayRun() bool { return w.runs }

// hasWork reports whether the pod runs: the provider sees only whether the whole pod runs, and restarts none of its
// containers.
func (w *wholePod) hasWork() bool { return w.runs }

// wakeWaiters makes all calls of await test their condition again. The caller holds the mutex.
func (w *wholePod) wakeWaiters() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until condition returns true. isTrue is false if ctx ends before that. condition is called with the
// mutex held, at once and after each list.
func (w *wholePod) await(ctx context.Context, condition func() bool) (isTrue bool) {
	for {
		w.pod.mu.Lock()
		isTrue = condition()
		changed := w.changed
		w.pod.mu.Unlock()
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
	number := w.pod.agent.poller.requestList()
	if !w.await(ctx, func() bool { return w.lastObservedList >= number }) {
		return fmt.Errorf("%w: %w", w.pod.agent.poller.lastFailure(), context.Cause(ctx))
	}
	return nil
}

// call calls the PodRuntime with a timeout, and returns its error. It logs the error, at level 1 if it repeats the
// previous one. It does not log an ErrContainerNotFound, or an error after the end of ctx.
func (w *wholePod) call(ctx context.Context, name string, timeout time.Duration, f func(context.Context) error) error {
	previousErr := w.pod.lastError(name)
	err := w.pod.callWithin(ctx, name, timeout, f)
	if err != nil && ctx.Err() == nil && !errors.Is(err, lifecycle.ErrContainerNotFound) {
		level := 0
		if previousErr != nil && previousErr.Error() == err.Error() {
			level = 1
		}
		klog.FromContext(ctx).V(level).Info("Failed to call the pod runtime", "call", name, "pod", w.pod.name, "err", err)
	}
	return err
}
