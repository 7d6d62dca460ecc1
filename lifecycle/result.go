package lifecycle

import (
	"errors"
	"slices"
	"time"
)

// Outcome says how the stop of a container ended, and is a bounded metric label. ""
// means that it has not ended yet.
type Outcome string

const (
	// Graceful means that the container ended within the time it was given.
	Graceful Outcome = "Graceful"
	// GraceExceeded means that the container used up its grace and the runtime
	// killed it. The runtime does not say so: it is concluded from a StopContainer
	// that lasted as long as its timeout.
	GraceExceeded Outcome = "GraceExceeded"
	// Forced means that a StopContainer with timeout 0 ended the container, because
	// others had failed until its deadline was over, or were silent. Whether it had time to
	// end by itself is not known.
	Forced Outcome = "Forced"
	// RuntimeStuck means that whether the container runs is not known: StopContainer
	// failed or was silent until it was given up, the start of the container had not
	// returned at the deadline, or nobody knows its ID ([ErrUnknownContainers]).
	RuntimeStuck Outcome = "RuntimeStuck"
	// NotFound means that the runtime did not know the container any more, that it was
	// being started and did not come up, or that it had exited, which only
	// [Terminator.Start] and the [ExitWatcher] knew. It is a success.
	NotFound Outcome = "NotFound"
	// LeftRunning means that the agent stopped before the container had ended. A
	// StopContainer that was under way may still end it.
	LeftRunning Outcome = "LeftRunning"
)

// HookOutcome says how the preStop hook of a container ended. "" means that it
// has none, or that the hook has not ended yet.
type HookOutcome string

const (
	// HookCompleted means that the hook ran to its end without an error.
	HookCompleted HookOutcome = "Completed"
	// HookFailed means that the hook ended with an error, or panicked. The stop went
	// on, and a FailedPreStopHook event was recorded.
	HookFailed HookOutcome = "Failed"
	// HookCut means that the hook was ended before its end: its time was spent
	// or shortened, the agent stopped, or a sleep's container exited. The cause
	// is in [HookResult.Cause].
	HookCut HookOutcome = "Cut"
	// HookAbandoned means that the hook did not end within a second of its
	// cancellation. The stop had gone on without it at once.
	HookAbandoned HookOutcome = "Abandoned"
	// HookSkipped means that there was no time for the hook, that it had run in an
	// earlier life of the agent ([Container.PreStopDone]), or that its feature gate is off.
	HookSkipped HookOutcome = "Skipped"
)

// Cause is why a hook, a wait or a stop was ended before its own end. It is an
// error, to be had with context.Cause from a hook's context, and a bounded
// metric label.
type Cause string

const (
	// GraceSpent means that the time of the pod was used up.
	GraceSpent Cause = "GraceSpent"
	// Shortened means that a smaller grace period came in while terminating, and
	// that it was used up.
	Shortened Cause = "Shortened"
	// ContainerExited means that the container ended by itself. Only sleeps end so.
	ContainerExited Cause = "ContainerExited"
	// AgentStopping means that [Terminator.Close] was called.
	AgentStopping Cause = "AgentStopping"
)

// Error makes a Cause an error: its text is its label.
func (c Cause) Error() string { return string(c) }

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
	// Outcome is "" for a container that has no hook, and while it has not ended.
	Outcome HookOutcome
	// Took is how long the hook ran, or until it was given up; 0 if it did not run.
	Took time.Duration
	// Cause is why the hook was cut or abandoned, "" if it was neither.
	Cause Cause
	// Err is what a failed hook said; nil for every other outcome. It may have
	// words of the hook's in it that are not meant for everyone.
	Err error
}

// ContainerResult is what became of one container so far.
type ContainerResult struct {
	// Name is the container's in the pod's spec.
	Name string
	// ID is the runtime's; "" while the container is being started, and the new
	// one for a sidecar that was started again.
	ID string
	// Phase is what is being done now; "" before anything is.
	Phase Phase
	// Outcome is final once it is set; the hook's may come up to a second later.
	Outcome Outcome
	Hook    HookResult
	// GrantedSeconds is the grace the container began with. A termination that was
	// shortened has less: [Result.GracePeriodSeconds].
	GrantedSeconds int64
	// Waited is how long the container waited for its turn; 0 while it waits.
	Waited time.Duration
	// Stopping is the time from the first StopContainer to the end; 0 before that.
	Stopping time.Duration
	// Err joins why the container had to be forced, is stuck or was left, that the
	// pod's spec has none of its name, and what code of the embedder's panicked; else
	// nil. Of calls that have failed the last one is in it, whatever became of the
	// container.
	Err error
}

// Result is what became of a pod's containers, in the order of the request.
type Result struct {
	// GracePeriodSeconds is the period in force: the one the termination began
	// with, or the last that shortened it.
	GracePeriodSeconds int64
	// Containers are those of the request, then those that only the table of the pod
	// knew: started or being started, killed alone, or stuck.
	Containers []ContainerResult
}

// labels are the outcomes, the worse the later, "" for what has none yet, and then the
// outcomes and causes of hooks.
func labels() []string {
	return []string{
		string(Graceful), string(NotFound), string(GraceExceeded), string(Forced), string(RuntimeStuck), string(LeftRunning), "",
		string(HookCompleted), string(HookFailed), string(HookCut), string(HookAbandoned), string(HookSkipped),
		string(GraceSpent), string(Shortened), string(ContainerExited), string(AgentStopping),
	}
}

// labelIndex finds one of the labels. Inlined it would put the list on the stack of each
// goroutine that ends a container, several times, which then has to grow.
//
//go:noinline
func labelIndex(label string) uint8 { return uint8(slices.Index(labels(), label)) }

// orWorse gives the worse of two outcomes.
func (o Outcome) orWorse(other Outcome) Outcome {
	if labelIndex(string(other)) > labelIndex(string(o)) {
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

// resultOf is the result of a single container.
func resultOf(c ContainerResult) Result { return Result{Containers: []ContainerResult{c}} }

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

// record is the result of a container whose pod's termination has ended, in less than
// half of the memory: pods that have ended are kept until they are forgotten.
type record struct {
	name, id                    string
	granted                     int64
	hookTook, waited, stopping  time.Duration
	errs                        *[2]error // of the stop and the hook; nil: nothing went wrong
	outcome, hookOutcome, cause uint8     // as indices of labels
	began                       uint32    // by the pod's status, in seconds since 1970; 0: that did not say
}

func recordOf(r *ContainerResult) record {
	packed := record{
		name: r.Name, id: r.ID, granted: r.GrantedSeconds,
		hookTook: r.Hook.Took, waited: r.Waited, stopping: r.Stopping,
		outcome: labelIndex(string(r.Outcome)), hookOutcome: labelIndex(string(r.Hook.Outcome)), cause: labelIndex(string(r.Hook.Cause)),
	}
	if r.Err != nil || r.Hook.Err != nil {
		packed.errs = &[2]error{r.Err, r.Hook.Err}
	}
	return packed
}

func (r *record) unpack() ContainerResult {
	all := labels()
	result := ContainerResult{
		Name: r.name, ID: r.id, Phase: PhaseEnded, GrantedSeconds: r.granted,
		Outcome: Outcome(all[r.outcome]), Waited: r.waited, Stopping: r.stopping,
		Hook: HookResult{Outcome: HookOutcome(all[r.hookOutcome]), Took: r.hookTook, Cause: Cause(all[r.cause])},
	}
	if r.errs != nil {
		result.Err, result.Hook.Err = r.errs[0], r.errs[1]
	}
	return result
}
