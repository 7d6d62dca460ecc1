package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// previousTimetable is the newest timetable, as far as the agent can know it. The next one may not be later; zero: it may.
type previousTimetable struct {
	NodeFact

	isStored bool // in the state log; an agent that dies while it makes the timetable has not stored it
}

// windowsOnlyMoveEarlier: a new timetable of a shutdown moves no end of the previous one later, neither that of the drain
// nor that of a bucket, even if another agent made the previous one.
func (h *nodeHistory) windowsOnlyMoveEarlier(f NodeFact) {
	previous := &h.previousTimetable
	switch f.What {
	case NodeRetaken: // another drain of the same shutdown begins, which may end later
		*previous = previousTimetable{}
	case NodeBooted, NodeKillLostFromLog: // the log is of an earlier boot, or a power cut has taken a part of it
		*previous = previousTimetable{}
	case NodeState:
		previous.isStored = true
	case NodeAgentBegan:
		hasReadLog := !f.NoLog
		isInLog := previous.isStored && !previous.ByTerminateAll && !previous.NoLog
		if canKnow := hasReadLog && isInLog; !canKnow {
			*previous = previousTimetable{}
		}
	case NodeTimetable:
		if previous.Shutdown == f.Shutdown && previous.Planned { // one that is not Planned is preliminary
			h.requireNoLaterTimes(previous.NodeFact, f)
		}
		*previous = previousTimetable{NodeFact: f}
	default:
	}
}

// requireNoLaterTimes adds a violation for each time that a new timetable moves later: the end of the wait for pods (WaitEnd),
// the release of the lock (ReleaseBy), and the end of each bucket that is not over yet.
func (h *nodeHistory) requireNoLaterTimes(previous, f NodeFact) {
	if f.WaitEnd.After(previous.WaitEnd) {
		h.addViolation(f, "the wait ended at %v", sinceBoot(previous.WaitEnd))
	}
	if f.ReleaseBy.After(previous.ReleaseBy) {
		h.addViolation(f, "the release was due at %v", sinceBoot(previous.ReleaseBy))
	}
	for i := range min(len(f.Windows), len(previous.Windows)) {
		end, previousEnd := f.Windows[i].End, previous.Windows[i].End
		if isOver := !end.After(f.At); !isOver && end.After(previousEnd) {
			h.addViolation(f, "bucket %d ended at %v", i, sinceBoot(previousEnd))
		}
	}
}

// bucketIndex returns the index of the bucket for pods of a priority. The windows are in ascending order, and w.Priority is the
// lowest priority of a bucket. The first bucket also has the pods of all lower priorities.
func bucketIndex(windows []NodeWindow, priority int32) int {
	bucket := 0
	for i, w := range windows {
		if w.Priority <= priority {
			bucket = i
		}
	}
	return bucket
}

// bucketTurn is the turn of one bucket: the time in which the drain kills the pods of the bucket and waits for them.
type bucketTurn struct {
	windows []NodeWindow // of the newest timetable
	state   NodeFact     // the newest NodeState fact
	began   time.Time    // when the turn began, which may be before its first kill
}

// bucketsDoNotOverlap checks that the buckets have their turns one after another. A drain kills no pod before the turn of its
// bucket, and ends a turn only when all pods that were killed in it have ended, or the time of the bucket is over. Otherwise a
// pod that is still being stopped could lose a pod of higher priority on which it depends.
func (h *nodeHistory) bucketsDoNotOverlap(f NodeFact) {
	t := &h.turn
	switch f.What {
	case NodeTimetable:
		t.setWindows(f)
	case NodeKill:
		bucket := bucketIndex(t.windows, h.pod(f.Pod).priority)
		isTooEarly := bucket > f.BucketsOver
		if h.isFirstKillByDrain(f) && isTooEarly {
			h.addViolation(f, "its bucket is %d, and only %d are over", bucket, f.BucketsOver)
		}
	case NodeState:
		if isNewDrain := f.Draining != t.state.Draining; isNewDrain {
			t.state, t.began = f, f.At
			for _, p := range h.pods {
				p.wasAwaited = false
			}
		}
		for bucket := t.state.BucketsOver; bucket < f.BucketsOver; bucket++ {
			h.endTurn(bucket, f)
		}
		t.state = f
	default:
	}
}

// setWindows replaces the windows by those of a new timetable. A bucket whose KillsEnd has passed keeps that time: the drain may
// have gone on to the next bucket then, and a later KillsEnd would make this look too early.
func (t *bucketTurn) setWindows(f NodeFact) {
	previous := t.windows
	t.windows = slices.Clone(f.Windows)
	isSameDrain := f.Shutdown == t.state.Draining
	for i := range min(len(previous), len(t.windows)) {
		previousEnd := previous[i].KillsEnd
		if isSameDrain && previousEnd.Before(f.At) {
			t.windows[i].KillsEnd = previousEnd
		}
	}
}

// endTurn ends the turn of a bucket. If the time of the turn is not over, no pod of this bucket or a lower one may still run
// after its kill, except a pod for which an earlier turn has waited already.
func (h *nodeHistory) endTurn(bucket int, f NodeFact) {
	t := &h.turn
	timeOver := h.turnTimeOver(bucket)
	for _, p := range h.pods {
		isHigher := bucketIndex(t.windows, p.priority) > bucket
		if isHigher || !p.mustAwaitEnd {
			continue
		}
		if !p.wasAwaited && f.At.Before(timeOver) {
			h.addViolation(f, "the turn of bucket %d is over, though %s runs and has until %v", bucket, p.name, sinceBoot(timeOver))
		}
		p.wasAwaited = true
	}
	t.began = f.At
}

// turnTimeOver returns when the time of a bucket's turn is over: at the bucket's KillsEnd or, with NoRollOver, when the bucket's
// configured time since the beginning of the turn is over, if that is earlier; zero: the bucket has no time.
func (h *nodeHistory) turnTimeOver(bucket int) time.Time {
	w := h.turn.windows[bucket]
	switch {
	case w.OwnTime == 0:
		return time.Time{}
	case h.NoRollOver:
		return times.Earlier(w.KillsEnd, h.turn.began.Add(w.OwnTime))
	default:
		return w.KillsEnd
	}
}
