package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// run is the goroutine that runs the preStop hook of one container and stops it, like the
// kubelet's killContainer. Its code is read from top to bottom: it waits where the
// container waits.
type run struct {
	*container

	ctx      context.Context // of the calls for the container; ended by Close, and when the run ends
	cancel   context.CancelCauseFunc
	spec     *v1.Container // nil: the pod's spec has no container of this name
	role     role
	message  string // of the Killing event, "" for the kubelet's
	inOrder  bool   // the container waits for its turn to stop
	hookOnly bool   // the container has exited, and only its hook is run
	hook     preStop
	events   []func() error // record one event each; the first one is under way
}

// execute is the body of the goroutine.
func (r *run) execute() {
	r.table.mu.Lock()
	if r.hookOnly {
		r.preStopLocked()
		r.awaitHookLocked()
		r.awaitEventsLocked()
	}
	if r.hookOnly {
		r.endRunLocked()
		r.started, r.result.Phase, r.deadline = false, "", deadline{}
	} else { // hookOnly may have become false, if the container was to be stopped after all
		r.setOutcomeLocked(r.stopInTurnLocked())
		r.awaitHookLocked()
		r.awaitEventsLocked()
		r.finishLocked()
		r.endTerminationsLocked()
	}
	r.doneAndUnlock()
}

// stopInTurnLocked runs the hook of a container, waits for its turn and stops it. It
// returns the outcome.
func (r *run) stopInTurnLocked() (Outcome, error) {
	if outcome, err := r.awaitStartLocked(); outcome != "" {
		return outcome, err
	}
	if r.unlisted && isClosed(r.watchExitLocked(r.ctx)) {
		return NotFound, nil
	}
	r.recordKillingLocked()
	atTurn := r.table.terminator.opts.HookTiming == HooksAtTurn
	if !atTurn {
		r.preStopLocked()
	}
	r.awaitTurnLocked()
	if atTurn {
		r.preStopLocked()
	}
	if outcome, err := r.awaitStartLocked(); outcome != "" { // a sidecar may be starting again
		return outcome, err
	}
	return r.stopLocked()
}

// awaitStartLocked cancels the start of a container that is to be stopped, and waits for it
// until the deadline. It returns an outcome if there is nothing to stop, else "".
func (r *run) awaitStartLocked() (Outcome, error) {
	if r.starting.cancel != nil {
		r.starting.cancel(ErrTerminating)
		r.table.waitLocked(func() bool { return r.starting.cancel == nil || r.table.closed }, r.deadlineTime, nil)
	}
	switch {
	case r.table.closed:
		return LeftRunning, nil
	case r.starting.cancel != nil:
		return RuntimeStuck, errNeverStarted
	case r.starting.err != nil:
		return RuntimeStuck, r.starting.err
	case r.result.ID == "":
		return NotFound, nil
	default:
		return "", nil
	}
}

// mustWaitLocked reports whether the container has to wait for another one to end. Only
// containers that are being stopped are waited for, so that one that does not run holds up
// no other (k/k#125880).
func (r *run) mustWaitLocked() bool {
	return r.inOrder && !r.deadline.isOver() && slices.ContainsFunc(r.table.containers, func(other *container) bool {
		return other.run != nil && !other.run.hookOnly && other.result.Outcome == "" && r.role.mustWaitFor(other.run.role)
	})
}

// awaitTurnLocked waits for the container's turn to stop, until the deadline.
func (r *run) awaitTurnLocked() {
	if !r.mustWaitLocked() {
		return
	}
	start := time.Now()
	r.result.Phase = PhaseWaiting
	r.table.waitLocked(func() bool { return r.table.closed || !r.mustWaitLocked() }, r.deadlineTime, nil)
	r.result.Waited = time.Since(start)
}

// setOutcomeLocked sets the outcome of the container, and wakes the containers that wait
// for their turn.
func (r *run) setOutcomeLocked(outcome Outcome, err error) {
	if outcome == LeftRunning {
		err = errors.Join(AgentStopping, err)
	}
	if err != nil {
		r.result.Err = errors.Join(r.result.Err, &stopError{name: r.result.Name, id: r.result.ID, err: err})
	}
	r.result.Outcome = outcome
	r.table.wakeLocked()
}

// finishLocked ends the run and makes the result of the container final.
func (r *run) finishLocked() {
	r.endRunLocked()
	r.endedAt = time.Now()
	r.result.Phase = PhaseEnded
}

// endTerminationsLocked ends the terminations that only waited for this container.
func (c *container) endTerminationsLocked() {
	for t := c.termination; t != nil && t.active != nil; {
		a := t.active
		if outcome := t.endIfDoneLocked(); outcome != "" {
			c.table.withoutMutexLocked(func() {
				logV1(a.ctx, func(l klog.Logger) {
					l.Info("Pod terminated", "pod", klog.KObj(a.pod), "outcome", outcome, "took", time.Since(a.startedAt))
				})
			})
		}
		t = a.older
	}
}

// endRunLocked ends the run, and cancels the calls that have not returned.
func (r *run) endRunLocked() {
	r.run = nil
	r.cancel(ErrTerminating)
}

// logLocked logs about the container. The mutex is unlocked meanwhile, because a logger may
// block.
func (r *run) logLocked(log func(klog.Logger)) {
	id := r.result.ID
	r.table.withoutMutexLocked(func() {
		log(klog.FromContext(r.ctx).WithValues("pod", klog.KObj(r.pod), "containerName", r.result.Name, "containerID", id))
	})
}
