package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// attempt is one run of one container of a pod: from the call that starts it, or that first
// names its ID, until it has ended. What is asked about a container, such as whether it has
// ended or whether its hook has run, is answered by an attempt. The mutex of the pod's state
// guards it.
type attempt struct {
	calls

	state     *state
	pod       *v1.Pod // as last passed by the caller
	result    ContainerResult
	deadline  deadline       // of its hook, wait and stop; zero: it was never to be stopped
	knownAt   time.Time      // when it was first heard of: when its Start was called or its ID was named
	startedAt time.Time      // by the status of its pod; zero: the status does not say
	endedAt   time.Time      // when it had ended or was given up
	run       *run           // that stops it; nil: it is not being stopped
	awaitedBy []*Termination // that have not ended
	start     startCall
	exits     watch
	flags     flags
}

// flags is what is known of an attempt with yes or no.
type flags struct {
	started   bool // by [Pod.Start], which has returned its ID, or as [Pod.PostStart] says
	followed  bool // a later Start of its slot has succeeded
	restarted bool // that Start was during the termination, because the container had exited
	hookDone  bool // its preStop hook has run, is running, or was skipped
	announced bool // its Killing event was recorded
	unlisted  bool // neither the request nor the status has it, only Start
	left      bool // it is another attempt, or has started nothing
	counted   bool // it was counted as one that has exceeded its grace period
	renew     bool // it is stuck without a stop that was delivered: its next grace period is a new one
	obsolete  bool // nothing is to be known of it any more: it goes when nothing is at work for it
}

// startCall is the call of [Pod.Start] that an attempt began with.
type startCall struct {
	cancel     context.CancelCauseFunc // of the call that is under way; nil: none is
	returnedAt time.Time               // zero: there was no call, or it has not returned
	err        error                   // it is not known whether a container runs, because of this
}

// isStarting reports whether the Start of the attempt has not returned.
func (a *attempt) isStarting() bool { return a.start.cancel != nil }

// isOfStart reports whether the attempt began with [Pod.Start].
func (a *attempt) isOfStart() bool {
	return a.flags.started || a.isStarting() || !a.start.returnedAt.IsZero()
}

// isUnknown reports whether the attempt may run, although its ID was never told: its Start
// did not say whether it has started it, or a request or the status has it without an ID or
// a state.
func (a *attempt) isUnknown() bool { return a.start.err != nil && !a.isStarting() && a.result.ID == "" }

// hasEnded reports whether the attempt has ended, or was given up.
func (a *attempt) hasEnded() bool { return a.run == nil && a.result.Outcome != "" }

// isStuck reports whether the attempt is stuck: it was given up, or left running, and may
// still run.
func (a *attempt) isStuck() bool {
	return a.run == nil && (a.result.Outcome == RuntimeStuck || a.result.Outcome == LeftRunning)
}

// isOver reports whether the attempt has ended, and no termination waits for it.
func (a *attempt) isOver() bool { return a.hasEnded() && !a.isStuck() && len(a.awaitedBy) == 0 }

// isToStop reports whether a termination has to stop the attempt. It does so again for one
// that is stuck.
func (a *attempt) isToStop() bool {
	return a.run == nil && (a.result.Outcome == "" || a.isStuck() || a.isStarting())
}

// mayRun reports whether the attempt must be stopped with its pod even if neither the
// request nor the status names it.
func (a *attempt) mayRun(pod *v1.Pod) bool {
	switch {
	case a.flags.left:
		return false
	case a.isStarting(), a.isUnknown(), a.run != nil:
		return true
	case a.result.Outcome != "":
		return a.isToStop()
	default: // a goroutine, for instance of its postStart hook, shows that it ran
		return a.flags.started && !hasExited(pod, &a.result, a.knownAt) || a.goroutines > 0
	}
}

// isAwaitedBy reports whether a termination that has not ended waits for the attempt.
func (a *attempt) isAwaitedBy(t *Termination) bool { return slices.Contains(a.awaitedBy, t) }

// deadlineTime returns the time of the deadline, zero if there is none.
func (a *attempt) deadlineTime() time.Time { return a.deadline.at() }

// limitLocked gives an attempt that is being stopped the deadline d if that is earlier.
func (a *attempt) limitLocked(d deadline) {
	if d.at().Before(a.deadline.at()) {
		a.deadline = deadline{granted: d.granted, since: d.since, shortened: true}
		a.wakeLocked()
	}
}

// startRunLocked starts the goroutine that runs the hook of the attempt and stops it. An
// attempt that is stuck keeps its deadline if that is earlier. ctx gives values, and must
// not end.
func (a *attempt) startRunLocked(ctx context.Context, pod *v1.Pod, until deadline, r *run) {
	if a.deadline.since.IsZero() || a.flags.renew || until.at().Before(a.deadline.at()) {
		a.deadline = until
	}
	r.attempt, a.pod = a, pod
	a.flags.obsolete, a.flags.renew = false, false
	r.spec, r.role = findContainer(pod, a.result.Name)
	if a.hasEnded() {
		a.exits = watch{of: a} // the ID may be another container's now
	}
	if a.hasEnded() && !a.isStuck() {
		before := a.result
		r.before = &before
	}
	a.result.Phase, a.result.Outcome, a.result.Err = "", "", nil
	if !a.flags.announced {
		a.result.GrantedSeconds = until.granted
	}
	if r.spec == nil {
		// This is the kubelet's error, in which the reason is the message of the event. The
		// container is stopped all the same, without a hook and without regard to the order.
		a.result.Err = fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q",
			a.result.Name, a.result.ID, podText(pod), r.message)
	}
	a.run = r
	a.state.live.turns.enter(r.role)
	if r.unit != nil {
		r.unit.join(r)
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if a.settings().closed.Load() {
		r.setOutcomeLocked(LeftRunning, nil)
		r.finishLocked()
		return
	}
	a.goroutines++
	go r.execute()
}

// giveUpLocked makes an unknown attempt one that is stuck: there is no ID to stop.
func (a *attempt) giveUpLocked() {
	a.result.Phase, a.result.Outcome = PhaseEnded, RuntimeStuck
	a.result.Err = &stopError{name: a.result.Name, err: a.start.err}
}

// isReplaced reports whether the attempt had ended when it was to be stopped, and was started
// again.
func (a *attempt) isReplaced() bool {
	return a.flags.followed && (a.result.Outcome == NotFound || a.flags.restarted && a.result.Outcome == Graceful)
}

// startSecond returns when the attempt was started, in seconds since 1970; 0: not known.
func (a *attempt) startSecond() uint32 {
	began := a.startedAt
	if began.IsZero() && a.isOfStart() {
		began = a.knownAt
	}
	return uint32(max(began.Unix(), 0))
}

// addErrorLocked adds an error to the result of an attempt that is being stopped. The
// result of any other is final.
func (a *attempt) addErrorLocked(err error) {
	if err != nil && a.run != nil {
		a.result.Err = errors.Join(a.result.Err, err)
	}
}

// cancelLocked cancels what is under way for the attempt, because the terminator is closed.
func (a *attempt) cancelLocked() {
	if a.isStarting() {
		a.start.cancel(AgentStopping)
	}
	if a.run != nil {
		a.run.stopNow(AgentStopping)
	}
	a.wakeLocked()
}

// idleLocked is called when nothing is at work for the attempt any more.
func (a *attempt) idleLocked() {
	if a.flags.obsolete && !a.isBusy() {
		a.state.drop(a)
		a.state.removeIfEmpty()
	}
}

// isBusy reports whether something is under way for the attempt.
func (a *attempt) isBusy() bool { return a.isStarting() || a.run != nil || a.goroutines > 0 }

// settings returns those of the terminator.
func (a *attempt) settings() *settings { return a.state.live.settings }

// fullName returns the name of a container in a [StillRunningError].
func fullName(pod *v1.Pod, name string) string { return pod.Namespace + "/" + pod.Name + "/" + name }

// isReused reports whether a status says that an attempt that has ended was started again
// later with its ID: runtimes of processes reuse their IDs. Times that the API server has
// stored have whole seconds. Within the second of the end such a time tells something only if
// the attempt is known to have been started before.
func (a *attempt) isReused(startedAt time.Time) bool {
	began := a.startedAt
	if began.IsZero() && a.isOfStart() {
		began = a.knownAt
	}
	switch {
	case !a.hasEnded() || startedAt.IsZero():
		return false
	case startedAt.After(a.endedAt):
		return true
	default:
		isSameSecond := startedAt.Nanosecond() == 0 && !startedAt.Before(a.endedAt.Truncate(time.Second))
		return isSameSecond && !began.IsZero() && began.Truncate(time.Second).Before(startedAt)
	}
}

// hookCauseLocked returns the cause with which a preStop or postStart hook is cancelled
// now. exited is nil if the exit of the container does not end the hook.
func (a *attempt) hookCauseLocked(exited <-chan struct{}) error {
	switch {
	case isClosed(exited):
		return ContainerExited
	case a.settings().closed.Load():
		return AgentStopping
	case a.deadline.isOver():
		return a.deadline.cause()
	default:
		return ErrTerminating // the container was stopped during its postStart hook
	}
}
