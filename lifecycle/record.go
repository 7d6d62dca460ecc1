package lifecycle

import (
	"slices"
	"time"
)

// labels returns the outcomes from the best to the worst, "" for a container that has none
// yet, and then the outcomes and causes of hooks.
func labels() []string {
	all := make([]string, 0, 16)
	for _, o := range Outcomes() {
		all = append(all, string(o))
	}
	return append(all, "",
		string(HookCompleted), string(HookFailed), string(HookCut), string(HookAbandoned), string(HookSkipped),
		string(GraceSpent), string(Shortened), string(ContainerExited), string(AgentStopping))
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
	hidden                      bool      // the container was started again
	startedAt                   uint32    // in seconds since 1970; 0: not known
}

// is reports whether the container had an outcome.
func (r *record) is(o Outcome) bool { return r.outcome == labelIndex(string(o)) }

// outcomeOf returns the outcome.
func (r *record) outcomeOf() Outcome { return Outcome(labels()[r.outcome]) }

// startTime returns when the container was started, zero if that is not known.
func (r *record) startTime() time.Time {
	if r.startedAt == 0 {
		return time.Time{}
	}
	return time.Unix(int64(r.startedAt), 0)
}

// recordOf packs the result of a container.
func recordOf(r *ContainerResult, hidden bool, startedAt uint32) record {
	packed := record{
		name: r.Name, id: r.ID, granted: r.GrantedSeconds,
		hookTook: r.Hook.Took, waited: r.Waited, stopping: r.Stopping,
		hidden: hidden, startedAt: startedAt,
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
