package lifecycle

import (
	"errors"
	"slices"
	"time"
)

// Outcome says how the stop of a container ended; "" while it has not. It is a metric label.
type Outcome string

const (
	// OutcomeGraceful means that the container ended within its grace period.
	OutcomeGraceful Outcome = "Graceful"
	// OutcomeNotFound means that there was nothing to stop: the runtime did not list the container, or
	// no longer had it. It is a success, so a [Runtime] that looks for the pod under a wrong key, or an empty
	// [Request].Containers, makes the pod count as ended.
	OutcomeNotFound Outcome = "NotFound"
	// OutcomeGraceExceeded means that the container used up its grace period and the runtime killed it:
	// StopContainer took as long as its timeout.
	OutcomeGraceExceeded Outcome = "GraceExceeded"
	// OutcomeForced means that the container ended after a StopContainer with timeout 0, because
	// earlier calls had not returned in time or the deadline had passed. The container may or may not
	// have ended by itself.
	OutcomeForced Outcome = "Forced"
	// OutcomeRuntimeStuck means that the container may still run: when the terminator gave up, the
	// runtime still listed it, could not list or could not stop it, or its start had not returned.
	OutcomeRuntimeStuck Outcome = "RuntimeStuck"
	// OutcomeLeftRunning means that the terminator was closed before the container had ended. A
	// StopContainer call in progress may still end it.
	OutcomeLeftRunning Outcome = "LeftRunning"
)

// outcomes returns all outcomes except "", from best to worst.
func outcomes() []Outcome {
	return []Outcome{OutcomeGraceful, OutcomeNotFound, OutcomeGraceExceeded, OutcomeForced, OutcomeRuntimeStuck, OutcomeLeftRunning}
}

// hasEnded reports whether a container with this outcome is known to have ended. It is false while there is no
// outcome.
func (o Outcome) hasEnded() bool {
	return o != "" && o != OutcomeRuntimeStuck && o != OutcomeLeftRunning
}

// HookOutcome says how the preStop hook of a container ended; "" if there is no hook or it has not
// ended.
type HookOutcome string

const (
	// HookCompleted means that the hook returned without an error.
	HookCompleted HookOutcome = "Completed"
	// HookFailed means that the hook returned an error or panicked. A FailedPreStopHook event was
	// recorded, and the container was stopped.
	HookFailed HookOutcome = "Failed"
	// HookCut means that the hook was cancelled; see [HookResult].Cause.
	HookCut HookOutcome = "Cut"
	// HookAbandoned means that the hook did not return within a second of its cancellation. The stop
	// did not wait for it.
	HookAbandoned HookOutcome = "Abandoned"
	// HookSkipped means that there was no time for the hook, that it had already run
	// ([Container].PreStopDone), that the container had ended before it, or that it is a sleep and
	// [PodLifecycleSleepAction] is off.
	HookSkipped HookOutcome = "Skipped"
)

// Cause says why a hook was cancelled. It is an error, which [context.Cause] returns for the hook's
// context.
type Cause string

const (
	// CauseGraceSpent means that the grace period was used up.
	CauseGraceSpent Cause = "GraceSpent"
	// CauseShortened means that the grace period was shortened during the termination, and then used
	// up.
	CauseShortened Cause = "Shortened"
	// CauseContainerExited means that the container exited by itself, which ends a sleep.
	CauseContainerExited Cause = "ContainerExited"
	// CauseTerminatorClosed means that [Terminator.Close] was called. It matches [ErrClosed] in
	// errors.Is.
	CauseTerminatorClosed Cause = "TerminatorClosed"
)

// Error returns the cause, such as "GraceSpent".
func (c Cause) Error() string { return string(c) }

// Is makes [CauseTerminatorClosed] match [ErrClosed] in [errors.Is].
func (c Cause) Is(target error) bool { return c == CauseTerminatorClosed && target == ErrClosed }

// Phase is the step that the stop of a container has reached, for programs that show
// [Termination.Result] during a termination.
type Phase string

const (
	// PhaseHook means that the preStop hook is running.
	PhaseHook Phase = "Hook"
	// PhaseWaiting means that the container waits for other containers.
	PhaseWaiting Phase = "Waiting"
	// PhaseStopping means that StopContainer or StopPod is being called.
	PhaseStopping Phase = "Stopping"
	// PhaseEnded means that the stop has ended, with any outcome.
	PhaseEnded Phase = "Ended"
)

// HookResult is the result of a container's preStop hook.
type HookResult struct {
	// Outcome is "" if the container has no hook or the hook has not ended.
	Outcome HookOutcome
	// Took is how long the hook ran until it returned or was abandoned; 0 if it did not run or has not
	// ended.
	Took time.Duration
	// Cause is why the hook was cancelled, if it was cut or abandoned; "" for other outcomes.
	Cause Cause
	// Err is the error of a failed hook; nil for other outcomes. It may contain secret output of the
	// hook.
	Err error
}

// ContainerResult is the result so far of one run of a container.
type ContainerResult struct {
	// Name is the container's name in the pod's spec.
	Name string
	// ID and Began identify the run, as listed by the runtime or named by the request. They are zero
	// for a container of the spec that was not listed.
	ID    string
	Began time.Time
	// Phase is the current step; "" if none has begun.
	Phase Phase
	// Outcome is final once it is not "". The hook's outcome may be set up to a second later, because a
	// cancelled hook has that long to return.
	Outcome Outcome
	Hook    HookResult
	// GrantedSeconds is the container's first grace period in seconds, even if it was shortened later. It may be
	// below 1 for a [Request] with Containers and for a [ContainerRequest], which have no minimum. For a sidecar
	// that was started again during the termination it is the pod's whole grace period, although only the rest of
	// it was left.
	GrantedSeconds int64
	// Stopping is the time from the first StopContainer to the end; 0 before the end.
	Stopping time.Duration
	// Err joins all errors; nil if there are none. Its parts are
	//
	//   - the newest failure to stop the container, even if a later call succeeded;
	//   - the reason for [OutcomeForced], [OutcomeRuntimeStuck] or [OutcomeLeftRunning];
	//   - an error if the pod's spec has no container of this Name, so that no hook could run;
	//   - panics of callbacks.
	Err error
}

// Result is the result so far of a pod's termination.
type Result struct {
	// InProgress says that the termination has not ended: more containers may be listed.
	InProgress bool
	// GracePeriodSeconds is the current grace period in seconds: the first one, or the newest one that
	// shortened it. It may be below 1 if the request has Containers.
	GracePeriodSeconds int64
	// Containers has each run that was listed or that a request named, in the order of the pod's spec:
	// main containers, init containers, ephemeral containers. If a termination ends without any run, it
	// has each container of the spec as [OutcomeNotFound].
	Containers []ContainerResult
}

// Outcome returns the worst outcome of the containers: the constants are in the order from best to worst.
// It is "" until the termination has ended (InProgress) and each container has an outcome. Without containers
// it is [OutcomeNotFound].
func (r Result) Outcome() Outcome {
	switch {
	case r.InProgress:
		return ""
	case len(r.Containers) == 0:
		return OutcomeNotFound
	}
	known, worst := outcomes(), 0 // worst is an index in known
	for i := range r.Containers {
		rank := slices.Index(known, r.Containers[i].Outcome)
		if rank < 0 { // "", or an outcome that this version does not know: worse than all others
			return r.Containers[i].Outcome
		}
		worst = max(worst, rank)
	}
	return known[worst]
}

// Err joins the errors of the containers that may still run: [OutcomeRuntimeStuck] and
// [OutcomeLeftRunning]; nil if there are none. The errors of other containers, such as [OutcomeForced]
// ones, are only in their results.
func (r Result) Err() error {
	var errs []error
	for _, c := range r.Containers {
		if c.Outcome == OutcomeRuntimeStuck || c.Outcome == OutcomeLeftRunning {
			errs = append(errs, c.Err)
		}
	}
	return errors.Join(errs...)
}
