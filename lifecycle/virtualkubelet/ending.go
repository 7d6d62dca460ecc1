package virtualkubelet

import (
	"context"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// ending is the progress of a pod's end. The record's mutex guards it.
type ending struct {
	startInProgress bool                // startPod has not ended: it may start more containers
	terminating     bool                // the termination has begun
	setStatus       func(*v1.PodStatus) // shutdown.KillRequest.SetStatus of the last KillPod that had one; nil: none
	refusal         *shutdown.Admission // why the pod was not admitted; nil: admitted
	finalizing      bool                // the final status is being computed, or was: the containers no longer change
	final           *v1.PodStatus       // the final status; nil until it is computed
	finalSent       bool                // virtual-kubelet has the final status
	kills           int                 // the number of KillPod calls in progress
	forgotten       bool                // the provider no longer knows the pod

	// A pod has one termination at a time, which all calls join.
	termination     *lifecycle.Termination // the newest; nil: none. Written with both endMutex and the mutex held
	previousFailure error                  // why the termination before the newest could not stop all containers; nil: it stopped them, or there was none
}

// terminate begins or joins the pod's termination and returns it at once. If an earlier termination has ended but
// could not stop all containers, a new one begins. pod must not change afterwards. override replaces the pod's own
// grace period, in seconds; nil: the pod's own.
func (r *record) terminate(ctx context.Context, pod *v1.Pod, override *int64) (*lifecycle.Termination, error) {
	select {
	case r.endMutex <- struct{}{}: // locks: one call at a time, and none while the pod is being forgotten
		defer func() { <-r.endMutex }()
	case <-ctx.Done():
		return nil, fmt.Errorf("failed to terminate pod %s: %w", r.name, context.Cause(ctx))
	}
	if err := r.markTerminating(); err != nil {
		return nil, err
	}
	t := r.agent.terminator.Terminate(ctx, pod, lifecycle.Request{GracePeriodSeconds: r.ending.cappedGrace(override)})
	if t != r.ending.termination { // it is new; Terminate returns the earlier one while that is in progress
		r.mu.Lock()
		_, r.ending.previousFailure = r.ending.outcome() // termination is still the previous one
		r.ending.termination = t
		r.mu.Unlock()
		r.agent.spawn(r.name, func() {
			<-t.Done() // Close ends it too
			r.finalizeIfEnded()
		})
	}
	return t, nil
}

// cappedGrace returns the grace period in seconds to request, or nil for the pod's own. A pod's deadline only moves
// earlier: if a termination has ended and containers still run, the next one gets only the time until the old
// deadline, at least 1 s. The caller holds endMutex.
func (e *ending) cappedGrace(override *int64) *int64 {
	if isOver, _ := e.outcome(); !isOver {
		return override
	}
	remaining := max(int64(time.Until(e.termination.Deadline())/time.Second), graceperiod.MinimumPodSeconds)
	if override != nil {
		remaining = min(remaining, *override)
	}
	return &remaining
}

// markTerminating marks the pod as terminating, before any container is stopped, so that nothing is started or
// restarted from now on. It fails if the pod was forgotten or the provider is closed.
func (r *record) markTerminating() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ending.forgotten:
		return newNotFoundError(r.name.Namespace, r.name.Name)
	case r.agent.isClosed():
		return fmt.Errorf("failed to terminate pod %s: %w", r.name, lifecycle.ErrClosed)
	}
	r.ending.terminating = true
	r.deactivate(lifecycle.ErrTerminating)
	return nil
}

// end begins or joins the termination of the pod as it is now, and returns at once. override replaces the pod's own grace
// period, in seconds; nil: the pod's own. If the provider has forgotten the pod, which it does only after the pod's end,
// end does nothing and returns nil.
func (r *record) end(ctx context.Context, override *int64) error {
	if _, err := r.terminate(ctx, r.podWithStatus(), override); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// terminateRemaining stops what still runs of a pod that has ended on its own or was refused, such as sidecars. The
// pod needs a termination even if nothing runs, because the final status follows the end of one.
func (r *record) terminateRemaining() {
	_ = r.end(r.ctx, nil) // fails only after Close, which leaves pods running
}

// outcome reports whether the newest termination has ended; false if there is none. stuck is its error if it could
// not stop containers, which may still run: the next DeletePod, KillPod or endIfDone then stops them again. The
// caller holds endMutex or the mutex.
func (e *ending) outcome() (isOver bool, stuck error) {
	if e.termination == nil || !isClosed(e.termination.Done()) {
		return false, nil
	}
	return true, e.termination.Result().Err()
}

// finalizeIfEnded computes the final status once the termination, the start and all containers have ended, and
// makes sendStatuses send it. Call it after each of these ends; before the last one it does nothing.
func (r *record) finalizeIfEnded() {
	if !r.tryStartFinalizing() {
		return
	}
	pod := r.podWithStatus()
	r.mu.Lock()
	setStatus, refusal := r.ending.setStatus, r.ending.refusal
	r.mu.Unlock() // setStatus is the caller's code
	switch {
	case refusal != nil:
		writeRefusal(&pod.Status, *refusal)
	case setStatus != nil:
		setStatus(&pod.Status)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending.final = &pod.Status
	close(r.ended)
	if r.whole == nil { // the name of a whole pod is free only after PodRuntime.Delete
		r.freeName()
	}
	r.wake()
}

// tryStartFinalizing reports whether the caller must compute the final status. started is true once: for the first call
// after a termination has stopped all containers, no start is in progress, and nothing of the pod may run or restart
// (workload.mayRun). From then on the containers' states no longer change: a container whose end is not known has ended
// with an unknown exit code.
func (r *record) tryStartFinalizing() (started bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isOver, stuck := r.ending.outcome()
	hasEnded := isOver && stuck == nil && !r.ending.startInProgress && !r.workload.mayRun()
	if r.ending.finalizing || !hasEnded {
		return false
	}
	r.ending.finalizing = true
	r.containers.terminateUnknown()
	return true
}

// freeName lets a new pod with the same name start, which waits for nameFree. The caller holds the mutex.
func (r *record) freeName() {
	if !isClosed(r.nameFree) {
		close(r.nameFree)
	}
}

// stopError returns why the last termination that has ended could not stop the pod, for the result of DeletePod:
// virtual-kubelet then calls DeletePod again, with increasing pauses. It returns nil if that termination has succeeded
// or the pod has ended since.
func (r *record) stopError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	isOver, stuck := r.ending.outcome()
	if !isOver { // the newest termination is in progress: the previous one counts
		stuck = r.ending.previousFailure
	}
	if stuck == nil || r.ending.finalizing {
		return nil
	}
	return fmt.Errorf("failed to stop pod %s: %w", r.name, stuck)
}

// tryForget removes the pod from the provider, unless a KillPod is in progress, which needs the final status.
func (r *record) tryForget() (forgotten bool) {
	r.endMutex <- struct{}{} // locks, so that no termination begins while the pod is being forgotten
	defer func() { <-r.endMutex }()
	r.mu.Lock()
	r.ending.forgotten = r.ending.forgotten || r.ending.kills == 0
	forgotten = r.ending.forgotten
	pod := r.desired.pod
	r.mu.Unlock()
	if forgotten {
		r.agent.pods.remove(r)
		r.agent.terminator.Forget(pod)
		r.cancel()
	}
	return forgotten
}
