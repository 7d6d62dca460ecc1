package lifecycle

import (
	"errors"
	"slices"
	"time"
)

// Outcome says how the stop of a container ended; "" means that it has not ended yet. It is
// a metric label with few values.
type Outcome string

const (
	// Graceful means that the container ended within its grace period.
	Graceful Outcome = "Graceful"
	// GraceExceeded means that the container used up its grace period and the runtime
	// killed it. The runtime does not say that it killed: it is concluded from a
	// StopContainer that took as long as its timeout.
	GraceExceeded Outcome = "GraceExceeded"
	// Forced means that a StopContainer with timeout 0 ended the container, because
	// earlier calls had failed until the deadline, or had not returned in time. It is
	// not known whether the container had time to end by itself.
	Forced Outcome = "Forced"
	// RuntimeStuck means that it is not known whether the container runs: no
	// StopContainer had succeeded when it was given up, its start had not returned at
	// the deadline, or its ID or state is not known ([ErrUnknownContainers]).
	RuntimeStuck Outcome = "RuntimeStuck"
	// NotFound means that there was nothing to stop: the runtime did not have the
	// container any more, its start said so with [ErrContainerNotFound], or it had exited,
	// as only [Pod.Start] and the [ExitWatcher] could tell. It is a success.
	NotFound Outcome = "NotFound"
	// LeftRunning means that the terminator was closed before the container had ended.
	// A StopContainer that was under way may still end it.
	LeftRunning Outcome = "LeftRunning"
)

// HookOutcome says how the preStop hook of a container ended; "" means that the container
// has no hook, or that the hook has not ended yet.
type HookOutcome string

const (
	// HookCompleted means that the hook returned without an error.
	HookCompleted HookOutcome = "Completed"
	// HookFailed means that the hook returned an error, or panicked. A
	// FailedPreStopHook event was recorded, and the container was stopped.
	HookFailed HookOutcome = "Failed"
	// HookCut means that the hook was cancelled: its time was over or was shortened,
	// the terminator was closed, or the container of a sleep exited. The cause is in
	// [HookResult.Cause].
	HookCut HookOutcome = "Cut"
	// HookAbandoned means that the hook did not return within a second after it was
	// cancelled. The stop did not wait for it.
	HookAbandoned HookOutcome = "Abandoned"
	// HookSkipped means that there was no time for the hook, that it had run before
	// ([Container.PreStopDone]), or that it is a sleep and the feature is off.
	HookSkipped HookOutcome = "Skipped"
)

// Cause is why a hook, a wait or a stop was ended early. It is an error, which context.Cause
// returns for the context of a hook, and a metric label with few values.
type Cause string

const (
	// GraceSpent means that the grace period was used up.
	GraceSpent Cause = "GraceSpent"
	// Shortened means that the grace period was shortened during the termination, and
	// then used up.
	Shortened Cause = "Shortened"
	// ContainerExited means that the container exited by itself, which ends a sleep.
	ContainerExited Cause = "ContainerExited"
	// AgentStopping means that [Terminator.Close] was called.
	AgentStopping Cause = "AgentStopping"
)

// Error returns the label as a text.
func (c Cause) Error() string { return string(c) }

// Phase says what is being done about a container now, for programs that show the result
// of [Termination.Result] while the termination is under way.
type Phase string

const (
	// PhaseHook means that the preStop hook is running.
	PhaseHook Phase = "Hook"
	// PhaseWaiting means that the container waits for its turn to stop.
	PhaseWaiting Phase = "Waiting"
	// PhaseStopping means that StopContainer was called, or StopPod for the whole pod.
	PhaseStopping Phase = "Stopping"
	// PhaseEnded means that the container has ended or was given up.
	PhaseEnded Phase = "Ended"
)

// HookResult is the result of a container's preStop hook.
type HookResult struct {
	// Outcome is "" if the container has no hook, and while the hook has not ended.
	Outcome HookOutcome
	// Took is how long the hook ran, until it returned or was abandoned; 0 if it did
	// not run.
	Took time.Duration
	// Cause is why the hook was cut or abandoned, "" for other outcomes.
	Cause Cause
	// Err is the error of a hook that failed, nil for other outcomes. It may contain
	// output of the hook that is not meant for everybody.
	Err error
}

// ContainerResult is the result of one container so far.
type ContainerResult struct {
	// Name is the name of the container in the pod's spec.
	Name string
	// ID is the ID in the runtime. It is "" while the container is being started, and
	// the new one after a sidecar was started again.
	ID string
	// Phase is what is being done now; "" if nothing was done yet.
	Phase Phase
	// Outcome is final once it is set; that of the hook may be set up to a second
	// later.
	Outcome Outcome
	Hook    HookResult
	// GrantedSeconds is the first grace period of the container. If the termination
	// was shortened, the present one is [Result.GracePeriodSeconds].
	GrantedSeconds int64
	// Waited is how long the container waited for its turn; 0 until that is over.
	Waited time.Duration
	// Stopping is the time from the first StopContainer to the end; 0 until then.
	Stopping time.Duration
	// Err joins the last error of StopContainer (also if a later call succeeded), why
	// the container was forced, is stuck or was left running, that the pod's spec has no
	// container of this name, and panics of the embedder's code. It is nil if there is
	// none of these.
	Err error
}

// Result has the results of a pod's containers.
type Result struct {
	// GracePeriodSeconds is the present grace period: the first one, or the last one
	// that shortened it.
	GracePeriodSeconds int64
	// Containers are those of the request, in its order, and then those that only the
	// terminator knew of: started, being started, killed alone, or stuck.
	Containers []ContainerResult
}

// Outcomes returns all outcomes of a container that has ended or was given up, from the best
// to the worst.
func Outcomes() []Outcome {
	return []Outcome{Graceful, NotFound, GraceExceeded, Forced, RuntimeStuck, LeftRunning}
}

// orWorse returns the worse of two outcomes.
func (o Outcome) orWorse(other Outcome) Outcome {
	all := Outcomes()
	place := func(o Outcome) uint { return uint(slices.Index(all, o)) } // of any other value: the highest
	if place(other) > place(o) {
		return other
	}
	return o
}

// Outcome returns the worst outcome of the containers, by the order of [Outcomes]; any other
// value counts as worse. It is "" while a container has no outcome, and Graceful for a pod
// without containers.
func (r Result) Outcome() Outcome {
	worst := Graceful
	for i := range r.Containers {
		worst = worst.orWorse(r.Containers[i].Outcome)
	}
	return worst
}

// resultOf returns a result with a single container.
func resultOf(c ContainerResult) Result { return Result{Containers: []ContainerResult{c}} }

// Err joins the errors of the containers that are not known to have ended: [RuntimeStuck]
// and [LeftRunning]. The errors of other containers, such as [Forced] ones, are only in
// their results.
func (r Result) Err() error {
	var errs []error
	for _, c := range r.Containers {
		if c.Outcome == RuntimeStuck || c.Outcome == LeftRunning {
			errs = append(errs, c.Err)
		}
	}
	return errors.Join(errs...)
}
