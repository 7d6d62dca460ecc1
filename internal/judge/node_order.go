package judge

import (
	"maps"
	"time"
)

// aPodIsKilledAfterItIsInTheLog judges section 3: what is to be done is in the log before it is done.
func aPodIsKilledAfterItIsInTheLog(r *NodeRecord) (broken []string) {
	stored := map[string]time.Time{}
	for _, f := range r.Facts {
		switch f.What {
		case NodeStored:
			stored[f.Pod] = f.Until
		case NodePodLost:
			delete(stored, f.Pod)
		case NodeKill:
			if !stored[f.Pod].Equal(f.Until) {
				broken = append(broken, nodeBreach(f, "the log has %v", stored[f.Pod].Sub(time.Unix(0, 0))))
			}
		default:
		}
	}
	return broken
}

// refuseAndPublishBeforeKill judges invariant 7, the first half. A call to publish that does not return is not waited for.
func refuseAndPublishBeforeKill(r *NodeRecord) (broken []string) {
	killed, publishes, isPublished := map[string]bool{}, map[int]bool{}, 0
	var refuses []NodeFact // kills of which the step is not over
	for _, f := range r.Facts {
		switch f.What {
		case NodeLogged:
			killed[f.Pod] = true
		case NodeBooted:
			clear(killed)
		case NodeBegan:
			clear(publishes)
			isPublished = 0
		case NodePodRuns, NodePodLost:
			delete(killed, f.Pod)
		case NodePublish:
			publishes[f.Call], isPublished = true, f.Shutdown
		case NodePublished:
			delete(publishes, f.Call)
		case NodeState:
			if !f.Refuses {
				for _, k := range refuses {
					broken = append(broken, nodeBreach(k, "pods are admitted"))
				}
			}
			refuses = refuses[:0]
		case NodeDied:
			refuses = refuses[:0]
		case NodeKill:
			if !killed[f.Pod] && f.Shutdown != 0 {
				refuses = append(refuses, f)
				if r.Publishes && !f.Own && isPublished != f.Shutdown && len(publishes) == 0 {
					broken = append(broken, nodeBreach(f, "the node's state is not published"))
				}
			}
			killed[f.Pod] = true
		default:
		}
	}
	return broken
}

// theLogIsSyncedBeforeTheRelease judges invariant 7, the second half: unless its time is over, the release waits for a sync that was begun after
// the last signalled pod was stored.
func theLogIsSyncedBeforeTheRelease(r *NodeRecord) (broken []string) {
	killed, stored, syncs := map[string]bool{}, map[string]int{}, map[int]int{}
	unsynced := map[string]int{} // when the pods that were signalled had been stored
	var until time.Time
	isEnding := false
	for i, f := range r.Facts {
		switch f.What {
		case NodeLogged:
			killed[f.Pod] = true
		case NodeBooted:
			clear(killed)
		case NodeBegan:
			isEnding = false
			clear(syncs)
			clear(unsynced)
		case NodeRunEnded:
			isEnding = true
		case NodeSuspended:
			until = f.Until
		case NodeStored:
			stored[f.Pod] = i
		case NodeKill:
			if f.Shutdown != 0 && !f.Own && !killed[f.Pod] {
				unsynced[f.Pod] = stored[f.Pod]
			}
			killed[f.Pod] = true
		case NodeSync:
			syncs[f.Call] = i
		case NodeSynced:
			maps.DeleteFunc(unsynced, func(_ string, stored int) bool { return stored < syncs[f.Call] })
		case NodeReleased:
			if len(unsynced) > 0 && f.At.Before(until) && !isEnding {
				broken = append(broken, nodeBreach(f, "no sync has answered"))
			}
		default:
		}
	}
	return broken
}

// afterACancellationNobodyIsSignalled judges invariant 8: who was signalled before runs out its grace period.
func afterACancellationNobodyIsSignalled(r *NodeRecord) (broken []string) {
	killed := map[string]bool{}
	for _, f := range r.Facts {
		switch f.What {
		case NodeLogged:
			killed[f.Pod] = true
		case NodeBooted:
			clear(killed)
		case NodePodRuns, NodePodLost:
			delete(killed, f.Pod)
		case NodeKill:
			if f.Shutdown == 0 && !killed[f.Pod] {
				broken = append(broken, nodeBreach(f, "no drain is under way"))
			}
			killed[f.Pod] = true
		default:
		}
	}
	return broken
}

// aCancellationUndoesEverythingAtOnce judges invariant 8: in the step of the cancellation admission opens and the lock is wanted, and the node's
// state is undone as soon as no older call is under way.
func aCancellationUndoesEverythingAtOnce(r *NodeRecord) (broken []string) {
	var cancelled *NodeFact
	isHeld, isEnding, published, publishes := false, false, 0, map[int]bool{}
	for i, f := range r.Facts {
		switch f.What {
		case NodeBegan:
			cancelled, isEnding, published = nil, false, 0
			clear(publishes)
		case NodeTerminateAll:
			isEnding = true
		case NodeDied:
			cancelled = nil
		case NodePublish:
			publishes[f.Call], published = true, f.Shutdown
		case NodePublished:
			delete(publishes, f.Call)
		case NodeCancelled:
			cancelled, isHeld = &r.Facts[i], false
		case NodeHeldAgain:
			isHeld = true
		case NodeState:
			if cancelled == nil || f.State != "none" {
				cancelled = nil
				continue
			}
			if f.Refuses && !isEnding {
				broken = append(broken, nodeBreach(*cancelled, "pods are refused"))
			}
			if !isHeld {
				broken = append(broken, nodeBreach(*cancelled, "the lock is not wanted"))
			}
			if r.Publishes && published != 0 && len(publishes) == 0 {
				broken = append(broken, nodeBreach(*cancelled, "the node's state is not undone"))
			}
			cancelled = nil
		default:
		}
	}
	return broken
}

// theLockIsReleasedOnceAndInTime judges invariant 5: a release follows a time for it, which it does not pass and which only moves earlier, and
// comes once for each lock. A time that has passed already is now.
func theLockIsReleasedOnceAndInTime(r *NodeRecord) (broken []string) {
	var until time.Time // zero: nobody has said
	isReleased, isEnding := false, false
	for _, f := range r.Facts {
		switch f.What {
		case NodeBegan, NodeBooted:
			until, isReleased, isEnding = time.Time{}, false, false
		case NodeDied:
			until = time.Time{}
		case NodeRunEnded:
			isEnding = true
		case NodeSuspended:
			if !until.IsZero() && f.Until.After(until) {
				broken = append(broken, nodeBreach(f, "it was %v", until.Sub(time.Unix(0, 0))))
			}
			if isReleased {
				broken = append(broken, nodeBreach(f, "it was released"))
			}
			if until = f.Until; f.At.After(until) {
				until = f.At
			}
		case NodeRetaken, NodeHeldAgain:
			until, isReleased = time.Time{}, false
		case NodeReleased:
			switch {
			case isReleased:
				broken = append(broken, nodeBreach(f, "it was released before"))
			case until.IsZero() && !isEnding:
				broken = append(broken, nodeBreach(f, "no time for it was named"))
			case f.At.After(until) && !until.IsZero():
				broken = append(broken, nodeBreach(f, "too late"))
			}
			until, isReleased = time.Time{}, true
		case NodeState:
			if !until.IsZero() && f.At.After(until) && !isEnding {
				broken = append(broken, nodeBreach(f, "the lock is held, and was to be released by %v", until.Sub(time.Unix(0, 0))))
				until = time.Time{}
			}
		default:
		}
	}
	return broken
}
