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
	starting    bool                // its start is under way, so it has not ended
	terminating bool                // its termination has begun
	setStatus   func(*v1.PodStatus) // SetStatus of the last kill; nil: none
	refusal     *shutdown.Admission // why the pod was not admitted; nil: it was
	finalizing  bool                // the final status is being made
	final       *v1.PodStatus       // nil: not final
	finalSent   bool                // virtual-kubelet has the final status
	kills       int                 // calls of KillPod under way, during which the pod is not forgotten
	forgotten   bool
}

// ender terminates one pod. The pod has one termination at a time, which all calls join.
type ender struct {
	*record

	left        chan struct{}          // closed when the name of the pod can be used again
	turn        chan struct{}          // of size 1: held by terminate and forget
	termination *lifecycle.Termination // the last one; nil: none. It changes with the turn held and the mutex
	failure     error                  // of the one before; nil: none. The mutex guards it
}

// terminate begins or joins the termination of a pod. If a termination has ended and something of the
// pod runs, that is stopped. The pod must not change afterwards. override is the grace period in
// seconds that replaces the pod's own; nil means none.
func (e *ender) terminate(ctx context.Context, pod *v1.Pod, override *int64) (*lifecycle.Termination, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("failed to terminate pod %s: %w", e.name, context.Cause(ctx))
	}
	if err := e.setTerminating(); err != nil {
		return nil, err
	}
	t := e.agent.terminator.Terminate(ctx, pod, lifecycle.Request{GracePeriodSeconds: e.atMost(override)})
	if t != e.termination {
		e.mu.Lock()
		_, e.failure = e.outcome()
		e.termination = t
		e.mu.Unlock()
		e.agent.spawn(e.name, func() {
			<-t.Done() // Close ends it too
			e.finalize()
		})
	}
	return t, nil
}

// atMost returns a grace period in seconds, or nil for that of the pod. What runs although a termination
// has ended has no more than that one has left, at least 1 s: the deadline of a pod only moves earlier.
func (e *ender) atMost(override *int64) *int64 {
	if isOver, _ := e.outcome(); !isOver {
		return override
	}
	left := max(int64(time.Until(e.termination.Deadline())/time.Second), graceperiod.MinimumPodSeconds)
	if override != nil {
		left = min(left, *override)
	}
	return &left
}

// setTerminating marks the pod as terminating, before the termination can end anything.
func (e *ender) setTerminating() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ending.forgotten:
		return newNotFoundError(e.name.Namespace, e.name.Name)
	case e.agent.isClosed():
		return fmt.Errorf("failed to terminate pod %s: %w", e.name, lifecycle.ErrClosed)
	}
	e.ending.terminating = true
	e.inactive(lifecycle.ErrTerminating)
	return nil
}

// end terminates the pod. It is no error if the pod has been forgotten.
func (e *ender) end(ctx context.Context, override *int64) error {
	if _, err := e.terminate(ctx, e.view(), override); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// endCompleted terminates the remaining containers of a pod that has completed.
func (e *ender) endCompleted() {
	_ = e.end(e.ctx, nil) // fails only when the provider is closed, which leaves pods as they are
}

// outcome reports whether the last termination has ended, and returns why something may run all the
// same: what could not be stopped is stopped again by the next DeletePod or KillPod, and when nothing is
// known to run any more. Turn or mutex is held.
func (e *ender) outcome() (isOver bool, stuck error) {
	if e.termination == nil || !isClosed(e.termination.Done()) {
		return false, nil
	}
	return true, e.termination.Result().Err()
}

// finalize makes the final status once the termination, the start and all containers have
// ended.
func (e *ender) finalize() {
	if !e.startFinalizing() {
		return
	}
	pod := e.view()
	e.mu.Lock()
	set, refusal := e.ending.setStatus, e.ending.refusal
	e.mu.Unlock()
	switch {
	case refusal != nil:
		refuse(&pod.Status, *refusal)
	case set != nil:
		set(&pod.Status)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending.final = &pod.Status
	close(e.ended)
	if e.whole() == nil {
		e.leave()
	}
	e.notifier.wake()
}

// startFinalizing returns true once, when the final status is to be made.
func (e *ender) startFinalizing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	isOver, stuck := e.outcome()
	if e.ending.finalizing || !isOver || stuck != nil || e.ending.starting || e.body.mayRun() {
		return false
	}
	e.ending.finalizing = true
	e.containers.terminateUnknown()
	return true
}

// leave marks that the name of the pod can be used again. The caller holds the mutex.
func (e *ender) leave() {
	if !isClosed(e.left) {
		close(e.left)
	}
}

// whyStuck returns why the last attempt to stop the pod has failed. virtual-kubelet calls again after
// an error, with increasing pauses. It is nil if the pod has ended or is ending.
func (e *ender) whyStuck() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	isOver, stuck := e.outcome()
	if !isOver {
		stuck = e.failure
	}
	if stuck == nil || e.ending.finalizing {
		return nil
	}
	return fmt.Errorf("failed to end pod %s: %w", e.name, stuck)
}

// forget removes the pod, unless a KillPod waits for its end, and reports whether it did.
func (e *ender) forget() (done bool) {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	e.mu.Lock()
	e.ending.forgotten = e.ending.forgotten || e.ending.kills == 0
	done = e.ending.forgotten
	pod := e.desired.pod
	e.mu.Unlock()
	if done {
		e.agent.pods.remove(e.record)
		e.agent.terminator.Forget(pod)
		e.cancel()
	}
	return done
}
