package judge

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// logIsSyncedBeforeRelease: the lock is released only when the log is safely on disk: each pod that this agent was the
// first to signal must be stored before a sync begins, and that sync must return before the release. A release that is due,
// or that follows the end of Run, need not wait for that.
func (h *nodeHistory) logIsSyncedBeforeRelease(release NodeFact) {
	isDue := !release.At.Before(h.lock.announcedFor)
	mustWait := !isDue && !h.runHasEnded
	for _, p := range h.pods {
		if mustWait && p.unsynced > 0 {
			h.violation(release, "no sync has saved that %s was signalled", p.name)
		}
	}
}

// nodeLock is the inhibitor lock.
type nodeLock struct {
	announcedFor time.Time // the time of release that the agent has announced last
	releaseBy    time.Time // when it must be released; zero: no time is announced for this lock
	isReleased   bool
}

// lockIsReleasedOnceInTime: each inhibitor lock is released once, and not after the time that the agent has announced for
// it (NodeSuspended). The announced time only moves earlier. When Run ends, the lock may be released without an announced
// time. A lock that is taken again has a new time.
func (h *nodeHistory) lockIsReleasedOnceInTime(f NodeFact) {
	lock := &h.lock
	hasTime := !lock.releaseBy.IsZero()
	isLate := hasTime && f.At.After(lock.releaseBy)
	switch f.What {
	case NodeAgentBegan, NodeBooted, NodeRetaken, NodeHeldAgain:
		lock.releaseBy, lock.isReleased = time.Time{}, false
	case NodeSuspended:
		if hasTime && f.Until.After(lock.releaseBy) {
			h.violation(f, "it was due at %v", sinceBoot(lock.releaseBy))
		}
		if lock.isReleased {
			h.violation(f, "it was released")
		}
		lock.announcedFor, lock.releaseBy = f.Until, times.Later(f.Until, f.At) // a time that has passed means now
	case NodeReleased:
		switch {
		case lock.isReleased:
			h.violation(f, "it was released before")
		case !hasTime && !h.runHasEnded:
			h.violation(f, "no time was announced for it")
		case isLate:
			h.violation(f, "too late")
		}
		lock.releaseBy, lock.isReleased = time.Time{}, true
	case NodeState:
		if isLate {
			h.violation(f, "the lock is held, and was to be released by %v", sinceBoot(lock.releaseBy))
			lock.releaseBy = time.Time{}
		}
	default:
	}
}

// cancellationRevertsEverything: in the step in which a shutdown is cancelled, the agent admits pods again, requests the
// inhibitor lock, and reverts the node's published state, unless an older publish call is in progress. After a call of
// TerminateAll pods stay refused.
func (h *nodeHistory) cancellationRevertsEverything(f NodeFact) {
	switch f.What {
	case NodeAgentBegan, NodeDied:
		h.cancelled = NodeFact{}
	case NodeCancelled:
		h.cancelled, h.isLockRequested = f, false
	case NodeHeldAgain:
		h.isLockRequested = true
	case NodeState: // the end of the step
		if hasOtherShutdown := f.State != "none"; h.cancelled.isSet() && !hasOtherShutdown {
			h.requireReverted(f)
		}
		h.cancelled = NodeFact{}
	default:
	}
}

// requireReverted adds a violation for all that the step of a cancellation has not reverted. state is the state after the step.
func (h *nodeHistory) requireReverted(state NodeFact) {
	if state.Refuses && !h.terminatesAll {
		h.violation(h.cancelled, "pods are refused")
	}
	if !h.isLockRequested {
		h.violation(h.cancelled, "the lock is not requested")
	}
	if h.Publishes && h.publishedShutdown != 0 && len(h.publishCalls) == 0 {
		h.violation(h.cancelled, "the node's state is not reverted")
	}
}
