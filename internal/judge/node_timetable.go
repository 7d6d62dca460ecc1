package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// nodeTimetable is a NodeWindows fact with whose times those of the next one are compared; zero: with none.
type nodeTimetable struct {
	NodeFact

	isStored bool // the step that made it has ended; an agent that dies before that has not stored it
}

// windowsOnlyMoveEarlier: a new timetable of a shutdown moves no end of the previous one later, neither that of the drain
// nor that of a bucket, even if another agent made the previous one. A timetable is compared with its successor only if it
// was made with a list of the pods (Planned). The end of a bucket that has passed is not compared. Nothing is compared
//
//   - after NodeRetaken, because another drain of the same shutdown begins, which may end later,
//   - after a boot (NodeBooted) or a power cut that took something of the log (NodePodLost), or
//   - when another agent begins that cannot know the previous timetable: it has not read the log, or the timetable is not
//     in the log.
func (h *nodeHistory) windowsOnlyMoveEarlier(f NodeFact) {
	previous := &h.timetable
	switch f.What {
	case NodeBooted, NodeRetaken, NodePodLost:
		*previous = nodeTimetable{}
	case NodeState: // the step has ended
		previous.isStored = true
	case NodeAgentBegan:
		isInLog := previous.isStored && !previous.ByTerminateAll && !previous.NoLog
		if hasReadLog := !f.NoLog; !hasReadLog || !isInLog { // the agent cannot know it
			*previous = nodeTimetable{}
		}
	case NodeWindows:
		if previous.Shutdown == f.Shutdown && previous.Planned {
			h.compareWindows(previous.NodeFact, f)
		}
		*previous = nodeTimetable{NodeFact: f}
	default:
	}
}

// compareWindows adds a violation for each time of the previous timetable that f moves later: the end of the wait for
// pods (WaitEnd), the release of the lock (ReleaseBy), and the end of each bucket that is not over at f.At.
func (h *nodeHistory) compareWindows(previous, f NodeFact) {
	if f.WaitEnd.After(previous.WaitEnd) {
		h.violation(f, "the wait ended at %v", sinceBoot(previous.WaitEnd))
	}
	if f.ReleaseBy.After(previous.ReleaseBy) {
		h.violation(f, "the release was due at %v", sinceBoot(previous.ReleaseBy))
	}
	for i := range min(len(f.Windows), len(previous.Windows)) {
		end, previousEnd := f.Windows[i].End, previous.Windows[i].End
		if isOver := !end.After(f.At); !isOver && end.After(previousEnd) {
			h.violation(f, "bucket %d ended at %v", i, sinceBoot(previousEnd))
		}
	}
}

// nodeBucket returns the index of the bucket that has the pods of a priority: the last bucket whose lowest priority is not
// above that priority, or the first bucket if there is none.
func nodeBucket(windows []NodeWindow, priority int32) int {
	bucket := 0
	for i, w := range windows {
		if w.Priority <= priority {
			bucket = i
		}
	}
	return bucket
}

// nodeTurn is the turn of a drain: the time in which the drain kills the pods of one bucket and waits for them.
type nodeTurn struct {
	windows []NodeWindow // of the newest timetable
	state   NodeFact     // the last NodeState fact; its Drain is 0 before the first one of a drain
	began   time.Time    // when the turn began, which may be before its first kill
}

// bucketsDoNotOverlap: a drain kills no pod before the turn of its bucket, and ends a turn only when all pods that were
// killed in it have ended, or the time of the bucket is over. Otherwise a pod could lose others that it needs to end. The
// pods whose kill has failed for good (NoRetry) are not waited for.
//
// The log says how many turns have ended. An agent that reads the log therefore continues with the next turn, and an agent
// that cannot read it begins with the first.
func (h *nodeHistory) bucketsDoNotOverlap(f NodeFact) {
	t := &h.turn
	switch f.What {
	case NodeAgentBegan, NodeRetaken: // after NodeRetaken the same shutdown drains again
		t.state = NodeFact{}
	case NodeWindows:
		t.setWindows(f)
	case NodeKill:
		p := h.pod(f.Pod)
		isJudged := h.isFirstOfDrain(f) && p.isRunning
		if bucket := nodeBucket(t.windows, p.priority); isJudged && bucket > f.Done {
			h.violation(f, "its bucket is %d, and only %d are over", bucket, f.Done)
		}
	case NodeState:
		if isNewDrain := f.Drain != t.state.Drain; isNewDrain {
			t.state, t.began = f, f.At
			for _, p := range h.pods { // the new drain waits again for the pods of earlier ones
				p.stillAwaited = p.awaitEnd
			}
		}
		for turn := t.state.Done; turn < f.Done; turn++ {
			h.endTurn(turn, f)
		}
		t.state = f
	default:
	}
}

// setWindows replaces the timetable by that of f. If the new timetable is for the drain in progress, a bucket whose
// KillsEnd has passed keeps its old KillsEnd: the drain may have gone on to the next bucket at that time, and a later
// KillsEnd would make this look too early.
func (t *nodeTurn) setWindows(f NodeFact) {
	previous := t.windows
	t.windows = slices.Clone(f.Windows)
	if isSameDrain := f.Shutdown == t.state.Drain; !isSameDrain {
		return
	}
	for i := range min(len(previous), len(t.windows)) {
		if hasPassed := previous[i].KillsEnd.Before(f.At); hasPassed {
			t.windows[i].KillsEnd = previous[i].KillsEnd
		}
	}
}

// endTurn ends the turn of a bucket. A turn must wait for the pods of its bucket and of lower ones that the agent has
// killed, unless an earlier turn of the drain has waited for them. If the turn ends before its time is over, each such pod
// that still runs is a violation. The turn's time ends at the bucket's KillsEnd; with NoRollOver it ends earlier if the
// bucket's own time, counted from the beginning of the turn, is over. A bucket without time waits for nobody.
func (h *nodeHistory) endTurn(turn int, f NodeFact) {
	t := &h.turn
	w := t.windows[turn]
	turnEnd := w.KillsEnd
	if h.NoRollOver {
		turnEnd = times.Earlier(turnEnd, t.began.Add(w.OwnTime))
	}
	for _, p := range h.pods {
		if !p.awaitEnd || nodeBucket(t.windows, p.priority) > turn {
			continue
		}
		if p.stillAwaited && w.OwnTime > 0 && f.At.Before(turnEnd) {
			h.violation(f, "the turn of bucket %d is over, though %s runs and has until %v", turn, p.name, sinceBoot(turnEnd))
		}
		p.stillAwaited = false
	}
	t.began = f.At
}
