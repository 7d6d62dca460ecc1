package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// run is the goroutine that runs the preStop hook of one container and stops it, like the
// kubelet's killContainer. Its code is read from top to bottom: it waits where the
// container waits.
type run struct {
	*attempt

	live    *live           // of the pod; it stays the same while the attempt is busy
	ctx     context.Context // of the calls for the container; ended by Close, and when the run ends
	cancel  context.CancelCauseFunc
	spec    *v1.Container // nil: the pod's spec has no container of this name
	role    role
	message string           // of the Killing event, as the request has it
	reason  string           // the message if the request has none, "" for the kubelet's
	before  *ContainerResult // of the attempt, which had ended before this stop; nil: it had not
	hooks   HandlerRunner    // nil: that of the options
	unit    *unit            // with whom it is stopped; nil: alone
	manner  manner
	hook    preStop
	told    queue
}

// manner is how a run stops its container.
type manner struct {
	inOrder bool // it waits for its turn to stop
	restart bool // it is a sidecar that is started again, which may go on until its turn
	once    bool // the first StopContainer that fails ends the run
}

// startLocked starts the goroutine that runs the hook of an attempt and stops it. ctx gives
// values, and must not end.
func (r *run) startLocked(ctx context.Context, v *live, a *attempt, pod *v1.Pod, until deadline) {
	r.live, r.attempt, r.before = v, a, a.stopBy(r, pod, until)
	if r.spec, r.role = findContainer(pod, r.result.Name); r.spec == nil {
		// This is the kubelet's error, in which the reason is the message of the event. The
		// container is stopped all the same, without a hook and without regard to the order.
		r.addErrorLocked(fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q",
			r.result.Name, r.result.ID, podText(pod), r.message))
	}
	v.keep(a)
	v.enter(r.role)
	if r.unit != nil {
		r.unit.join(r)
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if r.isClosed() {
		r.setOutcomeLocked(LeftRunning, nil)
		r.finishLocked()
		return
	}
	r.goroutines++
	go r.execute()
}

// execute is the body of the goroutine.
func (r *run) execute() {
	r.mu.Lock()
	r.setOutcomeLocked(r.stopInTurnLocked())
	r.hook.awaitLocked(r)
	r.told.awaitLocked(r)
	r.finishLocked()
	r.doneAndUnlock()
}

// stopInTurnLocked runs the hook of a container, waits for its turn and stops it. It
// returns the outcome.
func (r *run) stopInTurnLocked() (Outcome, error) {
	if !r.manner.restart {
		if outcome, err := r.awaitStartLocked(); outcome != "" {
			return outcome, err
		}
		if r.exits.askLocked(r.ctx, r.attempt, false); r.hasExitedLocked() {
			return NotFound, nil
		}
		r.recordKillingLocked()
	}
	atTurn := r.settings.HookTiming == HooksAtTurn && r.unit == nil
	if !atTurn {
		r.hook.runLocked(r)
	}
	r.awaitTurnLocked()
	if atTurn {
		r.hook.runLocked(r)
	}
	if r.manner.restart {
		if outcome, err := r.awaitStartLocked(); outcome != "" {
			return outcome, err
		}
		r.exits.askLocked(r.ctx, r.attempt, false)
	}
	if r.unit != nil {
		return r.unit.stopLocked(r)
	}
	if r.flags.followed && r.exits.isClosed() {
		return NotFound, nil
	}
	return (&stop{run: r, firstCallAt: time.Now(), failed: true}).untilEndedLocked()
}

// hasExitedLocked reports whether the watcher says that a container has exited of which
// neither the request nor the status says that it runs. One that a later start has followed
// has no hook then, unless the watcher says that it runs.
func (r *run) hasExitedLocked() bool {
	if r.before != nil { // it has ended before, as the runtime said
		return isClosed(r.exits.awaitAnswerLocked(r.attempt, time.Now().Add(exitAnswer)))
	}
	if !r.flags.unlisted {
		return false
	}
	if r.flags.followed && r.exits.awaitAnswerLocked(r.attempt, time.Now().Add(exitAnswer)) == nil {
		r.flags.hookDone = true
	}
	return r.exits.isClosed()
}

// awaitStartLocked cancels the start of a container that is to be stopped, and waits for it
// until the deadline. It returns an outcome if there is nothing to stop, else "".
func (r *run) awaitStartLocked() (Outcome, error) {
	if r.isStarting() {
		r.start.cancel(ErrTerminating)
		r.waitLocked(func() bool { return !r.isStarting() || r.isClosed() }, r.deadlineTime, nil)
	}
	same := func() *attempt { return r.live.find(r.result.ID, r.attempt) }
	r.waitLocked(func() bool {
		other := same()
		return r.result.ID == "" || other == nil || other.run == nil || r.isClosed()
	}, r.deadlineTime, nil)
	switch {
	case r.isClosed():
		return LeftRunning, nil
	case r.isStarting():
		return RuntimeStuck, errNeverStarted
	case r.flags.left:
		return NotFound, nil
	case r.start.err != nil && r.unit == nil:
		return RuntimeStuck, r.start.err
	case r.result.ID == "" && r.start.err == nil:
		return NotFound, nil
	default:
		return "", nil
	}
}

// recordKillingLocked records the Killing event of the container, once.
func (r *run) recordKillingLocked() {
	if !r.flags.announced && r.settings.Events != nil {
		r.recordEventLocked(containerReference(r.pod, r.role, r.result.Name), v1.EventTypeNormal, "Killing",
			killingMessage(r.message, r.reason, r.result.Name, r.result.ID))
	}
	r.flags.announced = true
}

// isClosed reports whether the terminator was closed.
func (r *run) isClosed() bool { return r.settings.isClosed() }

// mustWaitLocked reports whether the container has to wait for another one to end.
func (r *run) mustWaitLocked() bool {
	return r.manner.inOrder && r.unit == nil && !r.flags.alone && !r.deadline.isOver() && r.result.Outcome == "" && r.live.mustWait(r.role)
}

// awaitTurnLocked waits for the container's turn to stop, until the deadline.
func (r *run) awaitTurnLocked() {
	if !r.mustWaitLocked() {
		return
	}
	start := time.Now()
	r.result.Phase = PhaseWaiting
	r.waitLocked(func() bool {
		mustWait := r.mustWaitLocked() && !r.isClosed() && !r.flags.left
		if mustWait {
			r.live.wakeInTurn(r.role, &r.calls)
		}
		return !mustWait
	}, r.deadlineTime, nil)
	r.result.Waited = time.Since(start)
}

// setOutcomeLocked sets the outcome of the container, and wakes the containers that wait
// for their turn. If the container had ended before and the runtime does not have it any more,
// the result is that of before.
func (r *run) setOutcomeLocked(outcome Outcome, err error) {
	if outcome == LeftRunning {
		err = errors.Join(AgentStopping, err)
	}
	if err != nil {
		r.result.Err = errors.Join(r.result.Err, &stopError{name: r.result.Name, id: r.result.ID, err: err})
	}
	if outcome == NotFound && r.before != nil {
		r.result, outcome = *r.before, r.before.Outcome
	}
	r.result.Outcome = outcome
	if r.live.leave(r.role); r.unit != nil && !r.unit.isLed() {
		r.unit.hookEnded()
	}
	r.wakeLocked()
}

// finishLocked ends the run, makes the result of the container final, and ends the
// terminations that only waited for it.
func (r *run) finishLocked() {
	r.run = nil
	r.cancel(ErrTerminating)
	r.endedAt = time.Now()
	r.result.Phase = PhaseEnded
	if r.flags.left {
		r.flags.obsolete = true
	}
	for _, log := range r.live.endIfDone() {
		r.withoutMutexLocked(log)
	}
}

// isRestart reports whether the run is of a sidecar that is started again.
func (r *run) isRestart() bool { return r.manner.restart }

// endedBefore says that the container had ended before, with a result.
func (r *run) endedBefore(result ContainerResult) { r.before = &result }

// stopNow cancels what is under way.
func (r *run) stopNow(cause error) { r.cancel(cause) }

// logLocked logs about the container. The mutex is unlocked meanwhile, because a logger may
// block.
func (r *run) logLocked(log func(klog.Logger)) {
	id := r.result.ID
	r.withoutMutexLocked(func() {
		log(klog.FromContext(r.ctx).WithValues("pod", klog.KObj(r.pod), "containerName", r.result.Name, "containerID", id))
	})
}
