package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// nodeBucket returns the index of the bucket that has the pods of a priority: the last whose lowest priority is not
// above it, or the first bucket.
func nodeBucket(windows []NodeWindow, priority int32) int {
	bucket := 0
	for i, w := range windows {
		if w.Priority <= priority {
			bucket = i
		}
	}
	return bucket
}

// bucketsDoNotOverlap checks the turns of a drain. A turn is the time in which the drain kills the pods of one bucket and
// waits for them. The drain must kill no pod before the turn of its bucket. It may end a turn only when all pods that were
// killed in it have ended, or the time of the bucket is over. Otherwise a pod could lose others that it needs to end.
//
// The log says how many turns have ended. An agent that reads the log therefore continues with the next turn, and an agent
// that cannot read it begins with the first.
func bucketsDoNotOverlap(r *NodeRecord) (violations []string) {
	signalled := signalledPods{}
	turns := drainTurns{noRollOver: r.NoRollOver, running: map[string]NodeFact{}, awaited: map[string]bool{}}
	var firstKills []NodeFact // of the current step, whose NodeState fact says which turn it is
	for _, f := range r.Facts {
		isFirstKill := signalled.add(f)
		if isFirstKill && turns.isRunning(f.Pod) && f.Shutdown != 0 {
			firstKills = append(firstKills, f)
		}
		switch f.What {
		case NodeAgentBegan:
			firstKills = nil
		case NodeState:
			for _, kill := range firstKills {
				if bucket := turns.bucketOf(kill.Pod); f.Drain == kill.Shutdown && bucket > f.Done {
					violations = append(violations, nodeViolation(kill, "its bucket is %d, and only %d are over", bucket, f.Done))
				}
			}
			firstKills = nil
		default:
		}
		violations = append(violations, turns.add(f)...)
	}
	return violations
}

// drainTurns follows the turns of a drain (see bucketsDoNotOverlap). A turn must wait for the pods of its bucket and of
// lower ones that the agent has killed, except those that an earlier turn of the same drain has waited for, and those
// whose kill has failed for good (NoRetry).
type drainTurns struct {
	noRollOver bool                // a turn has only the time of its bucket
	running    map[string]NodeFact // by pod that is running: its NodePodRuns fact
	awaited    map[string]bool     // by running pod that this agent has killed: whether the drain has still to wait for it
	windows    []NodeWindow        // of the newest timetable
	lastState  NodeFact            // the last NodeState fact; its Drain is 0 before the first one of a drain
	turnBegan  time.Time           // when the current turn began, which may be before its first kill
}

func (t *drainTurns) isRunning(pod string) bool {
	_, isRunning := t.running[pod]
	return isRunning
}

func (t *drainTurns) bucketOf(pod string) int { return nodeBucket(t.windows, t.running[pod].Priority) }

// add adds a fact, and returns a violation for each turn that ends too early. A NodeState fact ends the turns that its
// Done says are over.
func (t *drainTurns) add(f NodeFact) (violations []string) {
	switch f.What {
	case NodeAgentBegan:
		clear(t.awaited)
		t.lastState = NodeFact{}
	case NodeRetaken:
		t.lastState = NodeFact{} // the same shutdown drains again
	case NodePodRuns:
		t.running[f.Pod] = f
	case NodePodEnded:
		delete(t.running, f.Pod)
		delete(t.awaited, f.Pod)
	case NodeWindows:
		t.setWindows(f)
	case NodeKill:
		if _, isKnown := t.awaited[f.Pod]; !isKnown && t.isRunning(f.Pod) {
			t.awaited[f.Pod] = true
		}
	case NodeKilled:
		if f.NoRetry {
			delete(t.awaited, f.Pod)
		}
	case NodeState:
		isNewDrain := f.Drain != t.lastState.Drain
		if isNewDrain {
			t.lastState, t.turnBegan = f, f.At
			for pod := range t.awaited { // the new drain waits again for the pods of earlier ones
				t.awaited[pod] = true
			}
		}
		for turn := t.lastState.Done; turn < f.Done; turn++ {
			violations = append(violations, t.end(turn, f)...)
		}
		t.lastState = f
	default:
	}
	return violations
}

// setWindows replaces the timetable by that of f. If the new timetable is for the drain in progress, a bucket whose
// KillsEnd has passed keeps its old KillsEnd: the drain may have gone on to the next bucket at that time, and a later
// KillsEnd would make this look too early.
func (t *drainTurns) setWindows(f NodeFact) {
	previous := t.windows
	t.windows = slices.Clone(f.Windows)
	if isSameDrain := f.Shutdown == t.lastState.Drain; !isSameDrain {
		return
	}
	for i := range min(len(previous), len(t.windows)) {
		if hasPassed := previous[i].KillsEnd.Before(f.At); hasPassed {
			t.windows[i].KillsEnd = previous[i].KillsEnd
		}
	}
}

// end ends the turn of a bucket. A turn must wait for the pods of its bucket and of lower ones, unless an earlier turn has
// waited for them. If the turn ends before its time is over, end returns a violation for each such pod that still runs.
// The turn's time ends at the bucket's KillsEnd; with NoRollOver it ends earlier if the bucket's own time, counted from
// the beginning of the turn, is over. A bucket without time waits for nobody.
func (t *drainTurns) end(turn int, f NodeFact) (violations []string) {
	w := t.windows[turn]
	turnEnd := w.KillsEnd
	if t.noRollOver {
		turnEnd = times.Earlier(turnEnd, t.turnBegan.Add(w.OwnTime))
	}
	for pod, isAwaited := range t.awaited {
		if t.bucketOf(pod) > turn {
			continue
		}
		t.awaited[pod] = false
		if isAwaited && w.OwnTime > 0 && f.At.Before(turnEnd) {
			violations = append(violations, nodeViolation(f, "the turn of bucket %d is over, though %s runs and has until %v", turn, pod, turnEnd.Sub(time.Unix(0, 0))))
		}
	}
	t.turnBegan = f.At
	return violations
}
