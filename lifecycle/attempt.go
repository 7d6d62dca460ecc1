package lifecycle

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
)

// attempt is one run of one container of a pod: from the call that starts it, or that first
// names its ID, until it has ended. What is asked about a container, such as whether it has
// ended or whether its hook has run, is answered by an attempt. It knows nothing of the pod's
// other containers. The mutex of the pod's life guards it.
type attempt struct {
	calls

	settings  *settings
	pod       *v1.Pod // as last passed by the caller
	result    ContainerResult
	deadline  deadline  // of its hook, wait and stop; zero: it was never to be stopped
	knownAt   time.Time // when it was first heard of: when its Start was called or its ID was named
	startedAt time.Time // by the status of its pod; zero: the status does not say
	endedAt   time.Time // when it had ended or was given up
	run       *run      // that stops it; nil: it is not being stopped
	start     startCall
	exits     watch
	flags     flags
}

// flags is what is known of an attempt with yes or no.
type flags struct {
	started   bool // by [Pod.Start], which has returned its ID, or as [Pod.PostStart] says
	followed  bool // a later Start of its name has succeeded
	restarted bool // that Start was during the termination, because the container had exited
	alone     bool // KillContainer stops it, so that it does not wait for its turn
	hookDone  bool // its preStop hook has run, is running, or was skipped
	announced bool // its Killing event was recorded
	unlisted  bool // neither the request nor the status has it, only Start
	left      bool // it is another attempt, or has started nothing
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

// isStuck reports whether the attempt was given up, or left running, and may still run.
func (a *attempt) isStuck() bool {
	return a.run == nil && (a.result.Outcome == RuntimeStuck || a.result.Outcome == LeftRunning)
}

// isOver reports whether the attempt has ended, as far as is known for good.
func (a *attempt) isOver() bool { return a.hasEnded() && !a.isStuck() }

// isBusy reports whether something is under way for the attempt.
func (a *attempt) isBusy() bool { return a.isStarting() || a.run != nil || a.goroutines > 0 }

// deadlineTime returns the time of the deadline as it is now, zero if there is none.
func (a *attempt) deadlineTime() time.Time { return a.deadline.at() }

// isReplaced reports whether the attempt had ended when it was to be stopped, and was started
// again.
func (a *attempt) isReplaced() bool {
	return a.flags.followed && (a.result.Outcome == NotFound || a.flags.restarted && a.result.Outcome == Graceful)
}

// mayRun reports whether the attempt must be stopped with its pod even if neither the
// request nor the status names it.
func (a *attempt) mayRun(pod *v1.Pod) bool {
	switch {
	case a.flags.left:
		return false
	case a.isStarting(), a.isUnknown(), a.run != nil, a.isStuck():
		return true
	case a.hasEnded():
		return false
	default: // a goroutine, for instance of its postStart hook, shows that it ran
		return a.flags.started && !hasExited(pod, &a.result, a.knownAt) || a.goroutines > 0
	}
}

// began returns when the attempt had been started at the latest, zero if that is not known.
func (a *attempt) began() time.Time {
	switch {
	case !a.startedAt.IsZero():
		return a.startedAt
	case !a.start.returnedAt.IsZero():
		return a.start.returnedAt
	case a.flags.started:
		return a.knownAt
	default:
		return time.Time{}
	}
}

// isReused reports whether a status says that an attempt that has ended was started again
// later with its ID: runtimes of processes reuse their IDs. Times that the API server has
// stored have whole seconds. Within the second of the end such a time tells something only if
// the attempt is known to have been started before.
func (a *attempt) isReused(startedAt time.Time) bool {
	switch began := a.began(); {
	case !a.hasEnded() || startedAt.IsZero():
		return false
	case startedAt.After(a.endedAt):
		return true
	default:
		isSameSecond := startedAt.Nanosecond() == 0 && !startedAt.Before(a.endedAt.Truncate(time.Second))
		return a.isOver() && isSameSecond && !began.IsZero() && began.Truncate(time.Second).Before(startedAt)
	}
}

// recall makes the attempt that of a record, which had ended at a time.
func (a *attempt) recall(r *record, endedAt time.Time) {
	a.result, a.startedAt, a.endedAt = r.unpack(), r.startTime(), endedAt
	a.flags = flags{hookDone: true, announced: true, obsolete: true}
}

// isEarly reports whether the attempt is one whose ID was named while the Start of another was under way.
func (a *attempt) isEarly(start *attempt) bool {
	return !a.knownAt.Before(start.knownAt) && a.start.returnedAt.IsZero()
}

// takeHook takes what another attempt has known of the preStop hook of the same container, and of
// its stop.
func (a *attempt) takeHook(same *attempt) {
	a.flags.hookDone, a.flags.announced = a.flags.hookDone || same.flags.hookDone, a.flags.announced || same.flags.announced
	if a.result.Hook.Outcome == "" {
		a.result.Hook = same.result.Hook
	}
	if a.run != nil && same.isOver() {
		a.run.endedBefore(same.result)
	}
}

// stopBy says that a run stops the attempt. One that is stuck keeps its deadline if that is
// earlier than until. It returns the result of an attempt that had ended, else nil.
func (a *attempt) stopBy(r *run, pod *v1.Pod, until deadline) (before *ContainerResult) {
	if a.deadline.since.IsZero() || a.flags.renew || until.at().Before(a.deadline.at()) {
		a.deadline = until
	}
	if a.hasEnded() {
		a.exits = watch{} // the ID may be another container's now
	}
	if a.isOver() {
		result := a.result
		before = &result
	}
	a.pod, a.result.Phase, a.result.Outcome, a.result.Err = pod, "", "", nil
	if !a.flags.announced {
		a.result.GrantedSeconds = until.granted
	}
	a.run, a.flags.obsolete, a.flags.renew, a.flags.alone = r, false, false, a.flags.alone && !r.manner.inOrder
	return before
}

// limitLocked gives an attempt that is being stopped the deadline d if that is earlier.
func (a *attempt) limitLocked(d deadline) {
	if d.at().Before(a.deadline.at()) {
		a.deadline = deadline{granted: d.granted, since: d.since, shortened: true}
		a.wakeLocked()
	}
}

// giveUpLocked makes an unknown attempt one that is stuck: there is no ID to stop.
func (a *attempt) giveUpLocked() {
	a.result.Phase, a.result.Outcome = PhaseEnded, RuntimeStuck
	a.result.Err = &stopError{name: a.result.Name, err: a.start.err}
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
