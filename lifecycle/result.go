package lifecycle

import (
	"errors"
	"slices"
	"time"
)

// Outcome says how the stop of a container ended. "" means that it has not
// ended yet.
type Outcome string

const (
	// Graceful means that the container ended within the time it was given.
	Graceful Outcome = "Graceful"
	// GraceExceeded means that the container used up its grace and the runtime
	// killed it.
	GraceExceeded Outcome = "GraceExceeded"
	// Forced means that StopContainer failed and a StopContainer with timeout 0
	// ended the container.
	Forced Outcome = "Forced"
	// RuntimeStuck means that StopContainer failed or was silent, and the one
	// with timeout 0 was too: whether the container runs is not known.
	RuntimeStuck Outcome = "RuntimeStuck"
	// NotFound means that the runtime did not know the container any more.
	NotFound Outcome = "NotFound"
	// LeftRunning means that the agent stopped before the container was stopped.
	LeftRunning Outcome = "LeftRunning"
)

// HookOutcome says how the preStop hook of a container ended. "" means that it
// has none, or that the hook has not ended yet.
type HookOutcome string

const (
	// HookCompleted means that the hook ran to its end.
	HookCompleted HookOutcome = "Completed"
	// HookFailed means that the hook ended with an error.
	HookFailed HookOutcome = "Failed"
	// HookCut means that the hook was ended before its end: its time was spent
	// or shortened, the agent stopped, or a sleep's container exited. The cause
	// is in [HookResult.Cause].
	HookCut HookOutcome = "Cut"
	// HookAbandoned means that the hook did not end when it was cancelled. The
	// stop went on without it.
	HookAbandoned HookOutcome = "Abandoned"
	// HookSkipped means that there was no time for the hook, that it had run
	// before ([Container.PreStopDone]), or that its feature gate is off.
	HookSkipped HookOutcome = "Skipped"
)

// Phase says what is being done about a container now. It is meant for a live
// view that polls [Termination.Result].
type Phase string

const (
	// PhaseHook means that the preStop hook is running.
	PhaseHook Phase = "Hook"
	// PhaseWaiting means that the container waits for its turn to stop.
	PhaseWaiting Phase = "Waiting"
	// PhaseStopping means that StopContainer was called.
	PhaseStopping Phase = "Stopping"
	// PhaseEnded means that nothing more will be done about the container.
	PhaseEnded Phase = "Ended"
)

// HookResult is what became of a container's preStop hook.
type HookResult struct {
	Outcome HookOutcome
	Took    time.Duration // 0 if it did not run
	Cause   Cause         // why it was cut, "" if it was not
	Err     error         // what the hook said, nil if it did not fail
}

// ContainerResult is what became of one container.
type ContainerResult struct {
	Name, ID       string
	Phase          Phase
	Outcome        Outcome
	Hook           HookResult
	GrantedSeconds int64         // the grace it began with, whole seconds
	Waited         time.Duration // for its turn
	Stopping       time.Duration // in StopContainer
	Err            error         // why it was forced, stuck or left; else nil
}

// Result is what became of a pod's containers, in the order of the request.
type Result struct {
	// GracePeriodSeconds is the period in force: the one the termination began
	// with, or the last that shortened it.
	GracePeriodSeconds int64
	Containers         []ContainerResult
}

// severity orders outcomes from the best to the worst.
func (o Outcome) severity() int {
	return slices.Index([]Outcome{Graceful, NotFound, GraceExceeded, Forced, RuntimeStuck, LeftRunning, ""}, o)
}

// orWorse gives the worse of two outcomes.
func (o Outcome) orWorse(other Outcome) Outcome {
	if other.severity() > o.severity() {
		return other
	}
	return o
}

// Outcome is the worst of the containers' outcomes, from the best: [Graceful],
// [NotFound], [GraceExceeded], [Forced], [RuntimeStuck], [LeftRunning]. It is "" while
// one is pending, and Graceful for a pod without containers.
func (r Result) Outcome() Outcome {
	worst := Graceful
	for i := range r.Containers {
		worst = worst.orWorse(r.Containers[i].Outcome)
	}
	return worst
}

// Err joins the errors of those containers that are not known to have ended:
// [RuntimeStuck] and [LeftRunning]. A container that had to be [Forced] is gone; why it
// was is in its own Err.
func (r Result) Err() error {
	var errs []error
	for _, c := range r.Containers {
		if c.Outcome == RuntimeStuck || c.Outcome == LeftRunning {
			errs = append(errs, c.Err)
		}
	}
	return errors.Join(errs...)
}
