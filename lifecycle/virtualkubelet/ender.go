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
	starting    bool                // containers are being started
	terminating bool                // the termination has begun
	setStatus   func(*v1.PodStatus) // shutdown.KillRequest.SetStatus of the last KillPod that had one; nil: none
	refusal     *shutdown.Admission // why the pod was not admitted; nil: admitted
	finalizing  bool                // the final status is being computed, or was: the containers no longer change
	final       *v1.PodStatus       // the final status; nil until it is computed
	finalSent   bool                // virtual-kubelet has the final status
	kills       int                 // calls of KillPod in progress
	forgotten   bool                // the provider no longer knows the pod
}

// ender terminates one pod. A pod has one termination at a time, which all calls join.
type ender struct {
	*record

	nameFree    chan struct{}          // closed when a new pod may use the name
	turn        chan struct{}          // of size 1: a lock that can be waited for with a context, for terminate and forget
	termination *lifecycle.Termination // the newest; nil: none. Written with both turn and the mutex held
	failure     error                  // why the termination before the newest could not stop all containers; nil: it did. The mutex guards it
}

// terminate begins or joins the pod's termination and returns it at once. If an earlier termination has ended but
// could not stop all containers, a new one begins. pod must not change afterwards. override is the grace period
// in seconds that replaces the pod's own; nil keeps that.
func (e *ender) terminate(ctx context.Context, pod *v1.Pod, override *int64) (*lifecycle.Termination, error) {
	select {
	case e.turn <- struct{}{}: // locks: one call at a time, and none while the pod is being forgotten
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("failed to terminate pod %s: %w", e.name, context.Cause(ctx))
	}
	if err := e.markTerminating(); err != nil {
		return nil, err
	}
	t := e.agent.terminator.Terminate(ctx, pod, lifecycle.Request{GracePeriodSeconds: e.cappedGrace(override)})
	if t != e.termination { // it is new; Terminate returns the earlier one while that is in progress
		e.mu.Lock()
		_, e.failure = e.outcome() // of the previous termination
		e.termination = t
		e.mu.Unlock()
		e.agent.spawn(e.name, func() {
			<-t.Done() // Close ends it too
			e.finalizeIfEnded()
		})
	}
	return t, nil
}

// cappedGrace returns the grace period in seconds to request, or nil for the pod's own. A pod's deadline only moves
// earlier: if a termination has ended and containers still run, the next one gets only the time until the old
// deadline, at least 1 s.
func (e *ender) cappedGrace(override *int64) *int64 {
	if isOver, _ := e.outcome(); !isOver {
		return override
	}
	left := max(int64(time.Until(e.termination.Deadline())/time.Second), graceperiod.MinimumPodSeconds)
	if override != nil {
		left = min(left, *override)
	}
	return &left
}

// markTerminating marks the pod as terminating, before any container is stopped, so that nothing is started or
// restarted from now on. It fails if the pod was forgotten or the provider is closed.
func (e *ender) markTerminating() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ending.forgotten:
		return newNotFoundError(e.name.Namespace, e.name.Name)
	case e.agent.isClosed():
		return fmt.Errorf("failed to terminate pod %s: %w", e.name, lifecycle.ErrClosed)
	}
	e.ending.terminating = true
	e.deactivate(lifecycle.ErrTerminating)
	return nil
}

// end begins or joins the termination of the pod as it is now, and returns at once. override is the grace period in
// seconds that replaces the pod's own; nil keeps that. A pod that was forgotten has ended, which is no error.
func (e *ender) end(ctx context.Context, override *int64) error {
	if _, err := e.terminate(ctx, e.podWithStatus(), override); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// terminateRemaining stops what still runs of a pod that has ended on its own or was refused, such as sidecars. The
// pod needs a termination even if nothing runs, because the final status follows the end of one.
func (e *ender) terminateRemaining() {
	_ = e.end(e.ctx, nil) // fails only after Close, which leaves pods running
}

// outcome reports whether the newest termination has ended; false if there is none. stuck is its error if it could
// not stop containers, which may still run; the next DeletePod, KillPod or endIfDone then stops them again. The
// caller holds the lock turn or the mutex.
func (e *ender) outcome() (isOver bool, stuck error) {
	if e.termination == nil || !isClosed(e.termination.Done()) {
		return false, nil
	}
	return true, e.termination.Result().Err()
}

// finalizeIfEnded computes the final status once the termination, the start and all containers have ended, and
// makes the notifier send it. It must be called after each of these ends, and does nothing until the last.
func (e *ender) finalizeIfEnded() {
	if !e.tryStartFinalizing() {
		return
	}
	pod := e.podWithStatus()
	e.mu.Lock()
	setStatus, refusal := e.ending.setStatus, e.ending.refusal
	e.mu.Unlock() // setStatus is the caller's code
	switch {
	case refusal != nil:
		writeRefusal(&pod.Status, *refusal)
	case setStatus != nil:
		setStatus(&pod.Status)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending.final = &pod.Status
	close(e.ended)
	if e.whole() == nil { // the name of a whole pod is free only after PodRuntime.Delete
		e.freeName()
	}
	e.notifier.wake()
}

// tryStartFinalizing claims the computation of the final status for its caller. claimed is true for one caller only, the
// first after the pod has ended: a termination has stopped all containers, no start is in progress, and nothing may run.
// From then on the containers' states no longer change; one without an end has an unknown exit code.
func (e *ender) tryStartFinalizing() (claimed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	isOver, stuck := e.outcome()
	hasEnded := isOver && stuck == nil && !e.ending.starting && !e.body.mayRun()
	if e.ending.finalizing || !hasEnded {
		return false
	}
	e.ending.finalizing = true
	e.containers.terminateUnknown()
	return true
}

// freeName lets a new pod with the same name start, which waits for nameFree. The caller holds the mutex.
func (e *ender) freeName() {
	if !isClosed(e.nameFree) {
		close(e.nameFree)
	}
}

// stopError returns why the last termination that has ended could not stop the pod, for the result of DeletePod:
// virtual-kubelet then calls DeletePod again, with increasing pauses. It returns nil if that termination has succeeded
// or the pod has ended since.
func (e *ender) stopError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	isOver, stuck := e.outcome()
	if !isOver { // the newest termination is in progress: the one before it counts
		stuck = e.failure
	}
	if stuck == nil || e.ending.finalizing {
		return nil
	}
	return fmt.Errorf("failed to stop pod %s: %w", e.name, stuck)
}

// tryForget removes the pod from the provider, unless a KillPod is in progress, which needs the final status.
func (e *ender) tryForget() (forgotten bool) {
	e.turn <- struct{}{} // locks: no termination may begin meanwhile
	defer func() { <-e.turn }()
	e.mu.Lock()
	e.ending.forgotten = e.ending.forgotten || e.ending.kills == 0
	forgotten = e.ending.forgotten
	pod := e.desired.pod
	e.mu.Unlock()
	if forgotten {
		e.agent.pods.remove(e.record)
		e.agent.terminator.Forget(pod)
		e.cancel()
	}
	return forgotten
}
