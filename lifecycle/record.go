package lifecycle

import (
	"slices"
	"time"
)

// labels returns the outcomes from the best to the worst, "" for a container that has none
// yet, and then the outcomes and causes of hooks.
func labels() []string {
	return []string{
		string(Graceful), string(NotFound), string(GraceExceeded), string(Forced), string(RuntimeStuck), string(LeftRunning), "",
		string(HookCompleted), string(HookFailed), string(HookCut), string(HookAbandoned), string(HookSkipped),
		string(GraceSpent), string(Shortened), string(ContainerExited), string(AgentStopping),
	}
}

// labelIndex returns the index of a label in labels. It is not inlined because the list would
// then be several times on the stack of each run, which would have to grow.
//
//go:noinline
func labelIndex(label string) uint8 { return uint8(slices.Index(labels(), label)) }

// record is the result of a container in a termination that has ended. It takes less than
// half of the memory of a ContainerResult, because it is kept until the pod is forgotten.
type record struct {
	name, id                    string
	granted                     int64
	hookTook, waited, stopping  time.Duration
	errs                        *[2]error // of the stop and of the hook; nil: both are nil
	outcome, hookOutcome, cause uint8     // indices in labels
	startedAt                   uint32    // by the pod's status, in seconds since 1970; 0: not known
}

// recordOf packs the result of a container. It does not set startedAt.
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

// unpack returns the result of which the record was made.
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
