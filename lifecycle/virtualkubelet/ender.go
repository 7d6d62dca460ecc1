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
	setStatus   func(*v1.PodStatus) // SetStatus of the last kill; nil: none
	refusal     *shutdown.Admission // why the pod was not admitted; nil: admitted
	finalizing  bool                // the final status is being computed
	final       *v1.PodStatus       // nil: not final
	finalSent   bool                // virtual-kubelet has the final status
	kills       int                 // calls of KillPod in progress
	forgotten   bool
}

// ender terminates one pod. A pod has one termination at a time, which all calls join.
type ender struct {
	*record

	nameFree    chan struct{}          // closed when a new pod may use the name
	turn        chan struct{}          // a lock, of size 1, for terminate and forget
	termination *lifecycle.Termination // the newest; nil: none. Written with both turn and the mutex held
	failure     error                  // of the previous termination; nil: none. The mutex guards it
}

// terminate begins or joins the pod's termination. If a termination has ended but containers still run,
// a new one stops them. pod must not change afterwards. override is the grace period in seconds that
// replaces the pod's own; nil: none.
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
	t := e.agent.terminator.Terminate(ctx, pod, lifecycle.Request{GracePeriodSeconds: e.cappedGrace(override)})
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

// cappedGrace returns the grace period in seconds, or nil for the pod's own. After a termination, a
// container that still runs gets only that termination's remaining time, at least 1 s: a pod's deadline
// only moves earlier.
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

// setTerminating marks the pod as terminating, before any container is stopped.
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

// end is terminate with the current pod. It returns nil if the pod has been forgotten.
func (e *ender) end(ctx context.Context, override *int64) error {
	if _, err := e.terminate(ctx, e.view(), override); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// endCompleted terminates the remaining containers of a pod that has completed.
func (e *ender) endCompleted() {
	_ = e.end(e.ctx, nil) // fails only after Close, which leaves pods running
}

// outcome reports whether the newest termination has ended, and returns its error if containers may still
// run. The next DeletePod or KillPod then stops them again; so does endIfDone. The caller holds turn or
// the mutex.
func (e *ender) outcome() (isOver bool, stuck error) {
	if e.termination == nil || !isClosed(e.termination.Done()) {
		return false, nil
	}
	return true, e.termination.Result().Err()
}

// finalize computes the final status once the termination, the start and all containers have ended.
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
		e.freeName()
	}
	e.notifier.wake()
}

// startFinalizing returns true once, when the final status can be computed.
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

// freeName lets a new pod use the name. The caller holds the mutex.
func (e *ender) freeName() {
	if !isClosed(e.nameFree) {
		close(e.nameFree)
	}
}

// stopError returns why the last attempt to stop the pod has failed, or nil if the pod has ended or is
// ending. virtual-kubelet retries after an error, with increasing pauses.
func (e *ender) stopError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	isOver, stuck := e.outcome()
	if !isOver {
		stuck = e.failure
	}
	if stuck == nil || e.ending.finalizing {
		return nil
	}
	return fmt.Errorf("failed to stop pod %s: %w", e.name, stuck)
}

// forget removes the pod unless a KillPod is in progress, and reports whether it did.
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
