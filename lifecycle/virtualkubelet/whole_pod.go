package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// wholePod is a pod of a [PodRuntime], which starts and stops pods only as a whole. The last list says which of its containers
// run. The managedPod's mutex guards the fields. The numbers of lists are the poller's.
type wholePod struct {
	*managedPod
	containers // with the states that the last list says or implies

	lastListAtCreate int           // the number of the last list that had begun when Create succeeded: it may lack the pod
	lastObservedList int           // the number of the last list that was passed to observeList
	isListed         bool          // the last list has the pod
	isRunning        bool          // the last list has the pod running, or Create has succeeded since
	missedOnce       bool          // the last list lacks the running pod; if the next one does too, the pod is lost
	status           *v1.PodStatus // from the last list with the pod; never modified; nil: none
	observed         chan struct{} // closed at the next list
}

// newWholePod returns a pod that was not created yet. It is not in the podTable yet.
func (p *Provider) newWholePod(ctx context.Context, pod *v1.Pod) *wholePod {
	m := newManagedPod(ctx, p, pod)
	w := &wholePod{managedPod: m, containers: newContainers(&m.desired.pod.Spec), observed: make(chan struct{})}
	m.workload = w
	return w
}

// asWholePod returns the wholePod of a pod of a [PodRuntime]; nil for a pod of a [Runtime].
func (m *managedPod) asWholePod() *wholePod {
	w, _ := m.workload.(*wholePod)
	return w
}

// watch does nothing: the poller lists all pods.
func (*wholePod) watch() {}

// setSpec is called when virtual-kubelet passes the pod's spec. A pod that a PodRuntime has listed without a spec has no containers
// yet: it gets those of the spec, with the states of the last list. Any other pod keeps its containers. The caller holds the mutex.
func (w *wholePod) setSpec(spec *v1.PodSpec) {
	if hasContainers := len(w.all) > 0; hasContainers {
		return
	}
	w.containers = newContainers(spec)
	if w.status != nil {
		w.setFromStatus(w.status)
	}
	w.wakeSender()
}

// observeList updates the pod from a list with this number. listed is nil if the list lacks the pod. If the pod has ended, its
// end is reported. If it runs although its termination has ended, it is stopped again.
func (w *wholePod) observeList(listed *v1.Pod, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isMissing := listed == nil
	if isMissing && w.mustAwaitNextList(number) {
		return
	}
	ranBefore := w.isRunning
	w.lastObservedList, w.isListed, w.missedOnce = number, !isMissing, false
	w.isRunning = !isMissing && !isTerminal(&listed.Status)
	if !isMissing {
		w.setStatus(&listed.Status)
	}
	w.wakeWaiters()
	switch {
	case ranBefore && !w.isRunning:
		w.provider.spawn(w.name, func() {
			if isMissing {
				klog.FromContext(w.ctx).Error(nil, "A running pod is missing from two lists of the pod runtime", "pod", w.name)
			}
			w.endIfDone()
		})
	case w.isRunning && w.endedTermination() != nil:
		w.provider.spawn(w.name, w.terminateRemaining)
	}
}

// mustAwaitNextList reports whether a list with this number, which lacks the pod, does not show yet that the pod has ended: it
// began before Create had succeeded, or it is the first one that lacks a running pod. In the second case it requests the next
// list at once. The caller holds the mutex.
func (w *wholePod) mustAwaitNextList(number int) bool {
	if number <= w.lastListAtCreate {
		return true
	}
	isFirstMiss := w.isRunning && !w.missedOnce
	if isFirstMiss {
		w.missedOnce = true
		w.provider.poller.requestList()
	}
	return isFirstMiss
}

// wasStarted reports whether the pod runtime has, or had, the pod, so that Create must not be called.
func (w *wholePod) wasStarted() bool { return w.isRunning || w.status != nil }

// mayRun reports whether the pod runs.
func (w *wholePod) mayRun() bool { return w.isRunning }

// hasWork reports whether the pod runs: the provider sees only whether the whole pod runs, and restarts none of its
// containers.
func (w *wholePod) hasWork() bool { return w.isRunning }

// wakeWaiters makes all calls of await test their condition again. The caller holds the mutex.
func (w *wholePod) wakeWaiters() {
	close(w.observed)
	w.observed = make(chan struct{})
}

// await waits until condition returns true. isTrue is false if ctx ends before that. condition is called with the
// mutex held, at once and after each list.
func (w *wholePod) await(ctx context.Context, condition func() bool) (isTrue bool) {
	for {
		w.mu.Lock()
		isTrue = condition()
		observed := w.observed
		w.mu.Unlock()
		if isTrue {
			return true
		}
		select {
		case <-observed:
		case <-ctx.Done():
			return false
		}
	}
}

// noLimit is the limit of awaitEnd if only its ctx limits the wait.
const noLimit time.Duration = 0

// awaitEnd waits until the pod has ended according to the last list, at most for the limit.
func (w *wholePod) awaitEnd(ctx context.Context, limit time.Duration) (hasEnded bool) {
	if limit != noLimit {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = limited
	}
	return w.await(ctx, func() bool { return !w.isRunning })
}

// awaitList requests a list and waits until the pod has been updated from it, or from a later one. A list in progress
// is not enough, because it may be older than what the caller has just done.
func (w *wholePod) awaitList(ctx context.Context) error {
	number := w.provider.poller.requestList()
	if !w.await(ctx, func() bool { return w.lastObservedList >= number }) {
		return fmt.Errorf("%w: %w", w.provider.poller.lastFailure(), context.Cause(ctx))
	}
	return nil
}

// callRuntime calls the PodRuntime with callTimeout. isKnown is false, and err nil, if it has answered that it does not know
// the pod (ErrContainerNotFound).
func (w *wholePod) callRuntime(ctx context.Context, name string, f func(context.Context) error) (isKnown bool, err error) {
	isKnown = true
	err = w.callWithin(ctx, name, callTimeout, func(ctx context.Context) error {
		err := f(ctx)
		if errors.Is(err, lifecycle.ErrContainerNotFound) {
			isKnown = false
			return nil
		}
		return err
	})
	return isKnown, err
}

// remove waits until the pod has ended, and calls Delete until a list lacks the pod, or Delete says that it does not
// exist. It returns false if the provider is closed before that.
func (w *wholePod) remove() (removed bool) {
	for w.awaitEnd(w.ctx, noLimit) {
		pod := w.podWithStatus()
		isKnown, err := w.callRuntime(w.ctx, "Delete", func(ctx context.Context) error { return w.provider.opts.Pods.Delete(ctx, pod) })
		isUnlisted := err == nil && w.awaitList(w.ctx) == nil && !w.hasPod()
		if !isKnown || isUnlisted {
			return true
		}
		if isClosed := times.Sleep(w.ctx, w.provider.opts.PollInterval) != nil; isClosed {
			return false
		}
	}
	return false
}

// hasPod reports whether the last list has the pod.
func (w *wholePod) hasPod() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isListed
}
