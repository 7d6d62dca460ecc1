package lifecycle

import (
	"strings"
	"time"
)

// labels are the outcomes of containers, in the order of [Outcomes], those of hooks, and the causes, each after a space. A
// record has a label as the place of that space; 0 is "".
const labels = "  Graceful NotFound GraceExceeded Forced RuntimeStuck LeftRunning" +
	" Completed Failed Cut Abandoned Skipped GraceSpent Shortened ContainerExited AgentStopping "

// labelIndex returns the place of a label in labels, 0 for one that is not there.
func labelIndex(label string) uint8 { return uint8(max(strings.Index(labels, label)-1, 0)) }

// labelAt returns the label at a place in labels.
func labelAt(i uint8) string {
	label, _, _ := strings.Cut(labels[i+1:], " ")
	return label
}

// record is the result of a container in a termination that has ended. It takes less than
// half of the memory of a ContainerResult, because it is kept until the pod is forgotten.
type record struct {
	name, id                    string
	granted                     int64
	hookTook, waited, stopping  time.Duration
	errs                        *[2]error // of the stop and of the hook; nil: both are nil
	outcome, hookOutcome, cause uint8     // places in labels
	hidden                      bool      // the container was started again
	startedAt                   uint32    // in seconds since 1970; 0: not known
}

// is reports whether the container had an outcome.
func (r *record) is(o Outcome) bool { return r.outcome == labelIndex(string(o)) }

// startTime returns when the container was started, zero if that is not known.
func (r *record) startTime() time.Time {
	if r.startedAt == 0 {
		return time.Time{}
	}
	return time.Unix(int64(r.startedAt), 0)
}

// recordOf packs the result of a container.
func recordOf(r *ContainerResult, hidden bool, startedAt time.Time) record {
	packed := record{
		name: r.Name, id: r.ID, granted: r.GrantedSeconds,
		hookTook: r.Hook.Took, waited: r.Waited, stopping: r.Stopping,
		hidden: hidden, startedAt: uint32(max(startedAt.Unix(), 0)),
		outcome: labelIndex(string(r.Outcome)), hookOutcome: labelIndex(string(r.Hook.Outcome)), cause: labelIndex(string(r.Hook.Cause)),
	}
	if r.Err != nil || r.Hook.Err != nil {
		packed.errs = &[2]error{r.Err, r.Hook.Err}
	}
	return packed
}

// unpack returns the result of which the record was made.
func (r *record) unpack() ContainerResult {
	result := ContainerResult{
		Name: r.name, ID: r.id, Phase: PhaseEnded, GrantedSeconds: r.granted,
		Outcome: Outcome(labelAt(r.outcome)), Waited: r.waited, Stopping: r.stopping,
		Hook: HookResult{Outcome: HookOutcome(labelAt(r.hookOutcome)), Took: r.hookTook, Cause: Cause(labelAt(r.cause))},
	}
	if r.errs != nil {
		result.Err, result.Hook.Err = r.errs[0], r.errs[1]
	}
	return result
}
