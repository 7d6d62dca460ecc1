package lifecycle

import (
	"slices"
	"time"
)

// record is the result of a container whose pod's termination has ended, in less than
// half of the memory: pods that have ended are kept until they are forgotten.
type record struct {
	name, id                    string
	granted                     int64
	hookTook, waited, stopping  time.Duration
	errs                        *recordErrors // nil: nothing went wrong
	outcome, hookOutcome, cause uint8         // as indices
}

type recordErrors struct{ stop, hook error }

// The values of a result that a record has as indices.
func outcomes() []Outcome {
	return []Outcome{Graceful, NotFound, GraceExceeded, Forced, RuntimeStuck, LeftRunning, ""}
}

func hookOutcomes() []HookOutcome {
	return []HookOutcome{"", HookCompleted, HookFailed, HookCut, HookAbandoned, HookSkipped}
}

func causes() []Cause { return []Cause{"", GraceSpent, Shortened, ContainerExited, AgentStopping} }

func recordOf(r *ContainerResult) record {
	packed := record{
		name: r.Name, id: r.ID, granted: r.GrantedSeconds,
		hookTook: r.Hook.Took, waited: r.Waited, stopping: r.Stopping,
		outcome:     uint8(slices.Index(outcomes(), r.Outcome)),
		hookOutcome: uint8(slices.Index(hookOutcomes(), r.Hook.Outcome)),
		cause:       uint8(slices.Index(causes(), r.Hook.Cause)),
	}
	if r.Err != nil || r.Hook.Err != nil {
		packed.errs = &recordErrors{stop: r.Err, hook: r.Hook.Err}
	}
	return packed
}

func (r *record) unpack() ContainerResult {
	result := ContainerResult{
		Name: r.name, ID: r.id, Phase: PhaseEnded, GrantedSeconds: r.granted,
		Outcome: outcomes()[r.outcome], Waited: r.waited, Stopping: r.stopping,
		Hook: HookResult{Outcome: hookOutcomes()[r.hookOutcome], Took: r.hookTook, Cause: causes()[r.cause]},
	}
	if r.errs != nil {
		result.Err, result.Hook.Err = r.errs.stop, r.errs.hook
	}
	return result
}
