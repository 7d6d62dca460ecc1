package judge

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// logIsSyncedBeforeRelease: the agent releases the inhibitor lock only when a sync of the state log has saved all its kills to
// disk, because the machine may then power off. A release that is due, or that follows the end of Run, need not wait for a sync.
func (h *nodeHistory) logIsSyncedBeforeRelease(release NodeFact) {
	isDue := !release.At.Before(h.lock.announcedRelease)
	mustWait := !isDue && !h.runHasEnded
	for _, p := range h.pods {
		if mustWait && p.unsyncedSince > 0 {
			h.addViolation(release, "no sync has saved that %s was signalled", p.name)
		}
	}
}

// inhibitorLock is what the facts so far say about the inhibitor lock.
type inhibitorLock struct {
	announcedRelease time.Time // the time of release that the agent has announced last, for this lock or an earlier one
	mustReleaseBy    time.Time // zero: the agent has announced no time for this lock
	isReleased       bool
}

// lockIsReleasedOnceInTime: each inhibitor lock is released once, by the time that the agent has announced for the lock. The
// announced time only moves earlier. Only when Run ends may the lock be released without an announced time.
func (h *nodeHistory) lockIsReleasedOnceInTime(f NodeFact) {
	lock := &h.lock
	wasAnnounced := !lock.mustReleaseBy.IsZero()
	isLate := wasAnnounced && f.At.After(lock.mustReleaseBy)
	switch f.What {
	case NodeAgentBegan, NodeBooted, NodeRetaken, NodeLockRequested: // a new lock
		lock.mustReleaseBy, lock.isReleased = time.Time{}, false
	case NodeReleaseAnnounced:
		if wasAnnounced && f.Until.After(lock.mustReleaseBy) {
			h.addViolation(f, "it was due at %v", sinceBoot(lock.mustReleaseBy))
		}
		if lock.isReleased {
			h.addViolation(f, "it was released")
		}
		lock.announcedRelease, lock.mustReleaseBy = f.Until, times.Later(f.Until, f.At) // a time that has passed means now
	case NodeReleased:
		switch {
		case lock.isReleased:
			h.addViolation(f, "it was released before")
		case !wasAnnounced && !h.runHasEnded:
			h.addViolation(f, "no time was announced for it")
		case isLate:
			h.addViolation(f, "too late")
		}
		lock.mustReleaseBy, lock.isReleased = time.Time{}, true
	case NodeState:
		if isLate {
			h.addViolation(f, "the lock is held, and was to be released by %v", sinceBoot(lock.mustReleaseBy))
			lock.mustReleaseBy = time.Time{} // one violation is enough
		}
	default:
	}
}

// cancellationRevertsEverything: when a shutdown is cancelled and no other one is in progress, the agent at once admits pods
// again, requests the inhibitor lock for the next shutdown, and publishes that the node does not shut down.
func (h *nodeHistory) cancellationRevertsEverything(f NodeFact) {
	switch f.What {
	case NodeAgentBegan, NodeDied:
		h.cancelled = NodeFact{}
	case NodeCancelled:
		h.cancelled, h.isLockRequested = f, false
	case NodeLockRequested:
		h.isLockRequested = true
	case NodeState: // the agent has done all that it does at once
		hasOtherShutdown := f.State != "none"
		if h.cancelled.isSet() && !hasOtherShutdown {
			h.requireReverted(f)
		}
		h.cancelled = NodeFact{}
	default:
	}
}

// requireReverted adds a violation for each thing that the agent has not reverted at once after a cancellation. state is the
// state then. After a call of TerminateAll pods stay refused. A publish call in progress delays the next one, so the node's
// published state may then be reverted later.
func (h *nodeHistory) requireReverted(state NodeFact) {
	if state.Refuses && !h.terminatesAll {
		h.addViolation(h.cancelled, "pods are refused")
	}
	if !h.isLockRequested {
		h.addViolation(h.cancelled, "the lock is not requested")
	}
	saysShutdown, mayRevertLater := h.publishedShutdown != 0, len(h.publishCalls) > 0
	if h.Publishes && saysShutdown && !mayRevertLater {
		h.addViolation(h.cancelled, "the node's state is not reverted")
	}
}
