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
// nor that of a bucket, even if another agent made the previous one.
func (h *nodeHistory) windowsOnlyMoveEarlier(f NodeFact) {
	previous := &h.timetable
	switch f.What {
	case NodeRetaken: // another drain of the same shutdown begins, which may end later
		*previous = nodeTimetable{}
	case NodeBooted, NodePodLost: // the log is of an earlier boot, or a power cut has taken a part of it
		*previous = nodeTimetable{}
	case NodeState: // the step has ended
		previous.isStored = true
	case NodeAgentBegan:
		isInLog := previous.isStored && !previous.ByTerminateAll && !previous.NoLog
		if hasReadLog := !f.NoLog; !hasReadLog || !isInLog { // the agent cannot know it
			*previous = nodeTimetable{}
		}
	case NodeWindows:
		if previous.Shutdown == f.Shutdown && previous.Planned { // one that is not Planned is preliminary
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
// killed in it have ended, or the time of the bucket is over. Otherwise a pod could lose others that it needs to end.
//
// The log says how many turns have ended. An agent that reads the log therefore continues with the next turn, and an agent
// that cannot read it begins with the first.
func (h *nodeHistory) bucketsDoNotOverlap(f NodeFact) {
	t := &h.turn
	switch f.What {
	case NodeWindows:
		t.setWindows(f)
	case NodeKill:
		p := h.pod(f.Pod)
		bucket := nodeBucket(t.windows, p.priority)
		isTooEarly := bucket > f.Done
		if h.isFirstOfDrain(f) && isTooEarly {
			h.violation(f, "its bucket is %d, and only %d are over", bucket, f.Done)
		}
	case NodeState:
		if isNewDrain := f.Drain != t.state.Drain; isNewDrain {
			t.state, t.began = f, f.At
			for _, p := range h.pods {
				p.wasAwaited = false
			}
		}
		for turn := t.state.Done; turn < f.Done; turn++ {
			h.endTurn(turn, f)
		}
		t.state = f
	default:
	}
}

// setWindows replaces the windows by those of a new timetable. A bucket whose KillsEnd has passed keeps it: the drain may have
// gone on to the next bucket at that time, and a later KillsEnd would make this look too early.
func (t *nodeTurn) setWindows(f NodeFact) {
	previous := t.windows
	t.windows = slices.Clone(f.Windows)
	isSameDrain := f.Shutdown == t.state.Drain
	for i := range min(len(previous), len(t.windows)) {
		if hasPassed := previous[i].KillsEnd.Before(f.At); isSameDrain && hasPassed {
			t.windows[i].KillsEnd = previous[i].KillsEnd
		}
	}
}

// endTurn ends the turn of a bucket. A turn must wait for the pods of its bucket and of lower ones that the agent has
// killed, unless an earlier turn of the drain has waited for them. If the turn ends before its time is over, each such pod
// that still runs is a violation.
func (h *nodeHistory) endTurn(turn int, f NodeFact) {
	t := &h.turn
	turnEnd := h.turnEnd(turn)
	for _, p := range h.pods {
		if !p.awaitEnd || nodeBucket(t.windows, p.priority) > turn {
			continue
		}
		if !p.wasAwaited && f.At.Before(turnEnd) {
			h.violation(f, "the turn of bucket %d is over, though %s runs and has until %v", turn, p.name, sinceBoot(turnEnd))
		}
		p.wasAwaited = true
	}
	t.began = f.At
}

// turnEnd returns when the time of a turn is over: at the bucket's KillsEnd or, with NoRollOver, when the bucket's own time,
// counted from the beginning of the turn, is over, if that is earlier. A bucket without time waits for nobody: zero.
func (h *nodeHistory) turnEnd(turn int) time.Time {
	w := h.turn.windows[turn]
	switch {
	case w.OwnTime == 0:
		return time.Time{}
	case h.NoRollOver:
		return times.Earlier(w.KillsEnd, h.turn.began.Add(w.OwnTime))
	default:
		return w.KillsEnd
	}
}
