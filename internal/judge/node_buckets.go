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

// bucketsDoNotOverlap checks that a drain kills no pod before the turn of its bucket, and ends no turn early: only when
// all pods that were killed in it have ended, or the time of the bucket is over. Otherwise a pod could lose others that it
// needs to end.
//
// How many turns are over is in the log. So an agent that reads the log continues with the next turn, and an agent that
// cannot read it begins with the first.
func bucketsDoNotOverlap(r *NodeRecord) (violations []string) {
	signalled := signalledPods{}
	turns := drainTurns{noRollOver: r.NoRollOver, running: map[string]NodeFact{}, mustWait: map[string]bool{}}
	var firstKills []NodeFact // of the current step, whose NodeState fact says which turn it is
	for _, f := range r.Facts {
		if signalled.isFirstKill(f) && turns.isRunning(f.Pod) && f.Shutdown != 0 {
			firstKills = append(firstKills, f)
		}
		switch f.What {
		case NodeBegan:
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

// drainTurns follows the turns of the buckets of a drain. A turn waits for the pods of its bucket and of lower ones that
// the agent has killed, and for which no turn of this drain has waited. It does not wait for a pod whose kill has failed
// for good.
type drainTurns struct {
	noRollOver bool                // a turn has only the time of its bucket
	running    map[string]NodeFact // by pod: the fact that says so
	mustWait   map[string]bool     // by running pod that this agent has killed: no turn has waited for it yet
	windows    []NodeWindow        // of the newest timetable
	last       NodeFact            // the last NodeState; its Drain is 0 before the first one of a drain
	began      time.Time           // the current turn; its lists and steps before the first kill count
}

func (t *drainTurns) isRunning(pod string) bool {
	_, is := t.running[pod]
	return is
}

func (t *drainTurns) bucketOf(pod string) int { return nodeBucket(t.windows, t.running[pod].Priority) }

// add adds a fact, and returns a violation for each turn that ends too early: the time in which the drain kills and awaits
// the pods of one bucket. A NodeState fact ends the turns that its Done says are over.
func (t *drainTurns) add(f NodeFact) (violations []string) {
	switch f.What {
	case NodeBegan:
		clear(t.mustWait)
		t.last = NodeFact{}
	case NodeRetaken:
		t.last = NodeFact{} // the same shutdown drains again
	case NodePodRuns:
		t.running[f.Pod] = f
	case NodePodEnded:
		delete(t.running, f.Pod)
		delete(t.mustWait, f.Pod)
	case NodeWindows:
		t.setWindows(f)
	case NodeKill:
		if _, isKnown := t.mustWait[f.Pod]; !isKnown && t.isRunning(f.Pod) {
			t.mustWait[f.Pod] = true
		}
	case NodeKilled:
		if f.NoRetry {
			delete(t.mustWait, f.Pod)
		}
	case NodeState:
		if isNewDrain := f.Drain != t.last.Drain; isNewDrain {
			t.last, t.began = f, f.At
			for pod := range t.mustWait { // the new drain waits again for the pods of earlier ones
				t.mustWait[pod] = true
			}
		}
		for turn := t.last.Done; turn < f.Done; turn++ {
			violations = append(violations, t.end(turn, f)...)
		}
		t.last = f
	default:
	}
	return violations
}

// setWindows sets a new timetable. A bucket of the same drain whose time was over before keeps that end: its turn may have
// ended with it.
func (t *drainTurns) setWindows(f NodeFact) {
	before := t.windows
	t.windows = slices.Clone(f.Windows)
	for i := range min(len(before), len(t.windows)) {
		if f.Shutdown == t.last.Drain && before[i].KillsEnd.Before(f.At) {
			t.windows[i].KillsEnd = before[i].KillsEnd
		}
	}
}

// end ends the turn of a bucket, which must wait for the pods of its bucket and of lower ones, unless an earlier turn has
// waited for them. If the turn ends before its time is over, end returns a violation for each such pod that still runs.
// The turn's time ends at the bucket's KillsEnd; with NoRollOver it ends earlier if the bucket's own time, counted from
// the begin of the turn, is over. A bucket without time waits for nobody.
func (t *drainTurns) end(turn int, f NodeFact) (violations []string) {
	w := t.windows[turn]
	end := w.KillsEnd
	if t.noRollOver {
		end = times.Earlier(end, t.began.Add(w.Pods))
	}
	for pod, mustWait := range t.mustWait {
		if t.bucketOf(pod) > turn {
			continue
		}
		t.mustWait[pod] = false
		if mustWait && w.Pods > 0 && f.At.Before(end) {
			violations = append(violations, nodeViolation(f, "the turn of bucket %d is over, though %s runs and has until %v", turn, pod, end.Sub(time.Unix(0, 0))))
		}
	}
	t.began = f.At
	return violations
}
