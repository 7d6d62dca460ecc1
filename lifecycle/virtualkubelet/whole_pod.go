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

// wholePod is the body of a pod of a [PodRuntime]: what the lists say of it. The record's mutex
// guards the fields.
type wholePod struct {
	*record

	createdAt int           // the number of the last list that had begun when Create succeeded
	toldBy    int           // the number of the last list that has told of the pod
	isListed  bool          // that list has it
	runs      bool          // that list has it and it has not ended, or Create has succeeded since
	isMissing bool          // the last list lacks it, which the next one has to confirm
	status    *v1.PodStatus // as of the last list that had the pod; never modified; nil: none had it
	changed   chan struct{} // closed by the next change
}

// observe takes over what a list says of the pod; nil: the list lacks it. A pod that runs is lost only
// when the next list lacks it too.
func (w *wholePod) observe(listed *v1.Pod, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if listed == nil && number <= w.createdAt {
		return // it is older than the pod
	}
	if listed == nil && w.runs && !w.isMissing {
		w.isMissing = true
		w.agent.poller.ask()
		return
	}
	ran := w.runs
	w.toldBy, w.isMissing, w.isListed, w.runs = number, false, listed != nil, listed != nil && !isTerminal(&listed.Status)
	if listed == nil && ran {
		klog.FromContext(w.ctx).Error(nil, "Two lists of the pod runtime lack a pod that was running", "pod", w.name)
	}
	if listed != nil {
		w.takeStatus(&listed.Status)
	}
	w.wake()
	hasEnded, _ := w.ender.outcome()
	switch {
	case ran && !w.runs:
		w.agent.spawn(w.name, w.over)
	case w.runs && hasEnded: // it is there after all
		w.agent.spawn(w.name, func() { _ = w.ender.end(w.ctx, nil) }) // fails only when the provider is closed
	}
}

// takeStatus takes over the status of the pod in a list, unless the pod has ended before.
func (w *wholePod) takeStatus(status *v1.PodStatus) {
	if w.status != nil && (isTerminal(w.status) || reflect.DeepEqual(w.status, status)) {
		return
	}
	w.status = status.DeepCopy()
	if !w.ending.finalizing {
		w.containers.observe(w.status)
		w.notifier.wake()
	}
}

// wake wakes those who wait for a change. The mutex is held.
func (w *wholePod) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until something is true of the pod, at most until ctx ends, and reports whether it is.
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

// ask waits for what a list says of the pod that begins after the call.
func (w *wholePod) ask(ctx context.Context) error {
	number := w.agent.poller.ask()
	if !w.await(ctx, func() bool { return w.toldBy >= number }) {
		return fmt.Errorf("%w: %w", w.agent.poller.lastFailure(), context.Cause(ctx))
	}
	return nil
}

// isKnown reports whether the pod runtime has, or had, the pod.
func (w *wholePod) isKnown() bool { return w.runs || w.status != nil }

// isTerminal reports whether the pod runtime says that the pod has ended.
func isTerminal(status *v1.PodStatus) bool {
	return status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed
}

// call makes a call of the PodRuntime for the pod, bounded in time, and logs why it failed.
func (w *wholePod) call(ctx context.Context, name string, timeout time.Duration, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := guarded(bounded, name, func() error { return f(bounded) })
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(1).Info("A call for a pod failed", "call", name, "pod", w.name, "err", err)
	}
	return err
}

// create has the pod runtime create the pod, unless it has it already. After a failure it asks whether
// the pod is there, and calls Create again if not.
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
			w.tellCreate(nil)
			return nil
		case w.active.Err() != nil:
			return context.Cause(w.active)
		case errdefs.IsInvalidInput(err):
			for _, c := range w.containers.all {
				w.markTerminated(c, notStarted(err))
			}
			return err
		}
		w.tellCreate(err)
		paused, cancel := context.WithTimeout(w.active, pause)
		w.await(paused, w.isKnown)
		cancel()
		if err := w.ask(w.active); err != nil {
			return context.Cause(w.active)
		}
	}
	return nil
}

// tellCreate shows in the status of the pod why a Create has failed; nil: it has not.
func (w *wholePod) tellCreate(err error) {
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

// tryCreate calls Create once, unless the termination of the pod has begun. It returns the error of
// Create.
func (w *wholePod) tryCreate() error {
	pod := w.view()
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = nil, nil // Create may append its own
	given := maps.Clone(pod.Annotations)
	var failed error
	err := w.agent.terminator.Start(w.ctx, pod, pod.Spec.Containers[0].Name, func(ctx context.Context) error {
		failed = w.agent.inTurn(ctx, func() error {
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

// clear has the pod runtime forget the pod, until a list lacks it. It returns false if the provider is
// closed before.
func (w *wholePod) clear() bool {
	for !isClosed(w.ender.left) {
		if !w.await(w.ctx, func() bool { return !w.runs }) {
			return false
		}
		pod := w.view()
		err := w.call(w.ctx, "Delete", callTimeout, func(ctx context.Context) error { return w.agent.opts.Pods.Delete(ctx, pod) })
		if err == nil && w.ask(w.ctx) != nil {
			return false
		}
		w.mu.Lock()
		if errors.Is(err, lifecycle.ErrContainerNotFound) || err == nil && !w.isListed {
			w.ender.leave()
		}
		w.mu.Unlock()
		if isClosed(w.ender.left) {
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

// mayRun reports whether the pod runs or may run. The mutex is held.
func (w *wholePod) mayRun() bool { return w.runs }

// goesOn reports whether the pod has not completed. The mutex is held.
func (w *wholePod) goesOn() bool { return w.runs }

// write writes the status of the pod. The mutex is held.
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
	case ended: // it was lost
		status.Phase = v1.PodFailed
	default:
		status.Phase = v1.PodRunning
	}
}
