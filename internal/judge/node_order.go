package judge

import (
	"maps"
	"time"
)

// podIsLoggedBeforeKill checks that a pod's deadline is in the log before the pod is killed.
func podIsLoggedBeforeKill(r *NodeRecord) (violations []string) {
	stored := map[string]time.Time{}
	for _, f := range r.Facts {
		switch f.What {
		case NodeStored:
			stored[f.Pod] = f.Until
		case NodePodLost:
			delete(stored, f.Pod)
		case NodeKill:
			if !stored[f.Pod].Equal(f.Until) {
				violations = append(violations, nodeViolation(f, "the log has %v", stored[f.Pod].Sub(time.Unix(0, 0))))
			}
		default:
		}
	}
	return violations
}

// refuseAndPublishBeforeKill checks that, before the first kill of a shutdown, pods are refused and the
// node's state is published. A publish call that does not return does not delay the kill.
func refuseAndPublishBeforeKill(r *NodeRecord) (violations []string) {
	killed, publishes, isPublished := map[string]bool{}, map[int]bool{}, 0
	var refuses []NodeFact // kills of the current step
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
					violations = append(violations, nodeViolation(k, "pods are admitted"))
				}
			}
			refuses = refuses[:0]
		case NodeDied:
			refuses = refuses[:0]
		case NodeKill:
			if !killed[f.Pod] && f.Shutdown != 0 {
				refuses = append(refuses, f)
				if r.Publishes && !f.Own && isPublished != f.Shutdown && len(publishes) == 0 {
					violations = append(violations, nodeViolation(f, "the node's state is not published"))
				}
			}
			killed[f.Pod] = true
		default:
		}
	}
	return violations
}

// logIsSyncedBeforeRelease checks that the lock is released only when the log is safely on disk: each pod
// that this agent was the first to signal must be stored before a sync begins, and that sync must succeed
// before the release. A release that is due, or that follows the end of Run, need not wait. TerminateAll's
// own kills do not count, because they are not stored.
func logIsSyncedBeforeRelease(r *NodeRecord) (violations []string) {
	killed := map[string]bool{}  // pods signalled since the machine booted
	stored := map[string]int{}   // for each pod, the index of the fact that stored it last
	syncs := map[int]int{}       // for each sync call, the index of the fact that began it
	unsynced := map[string]int{} // signalled pods, with the index of the fact that stored them
	var until time.Time          // when the release is due
	isEnding := false            // Run has ended
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
				violations = append(violations, nodeViolation(f, "no sync has succeeded"))
			}
		default:
		}
	}
	return violations
}

// noNewKillAfterCancellation checks that after a cancellation no further pod is signalled. Pods
// signalled before use up their grace period.
func noNewKillAfterCancellation(r *NodeRecord) (violations []string) {
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
				violations = append(violations, nodeViolation(f, "no drain is in progress"))
			}
			killed[f.Pod] = true
		default:
		}
	}
	return violations
}

// cancellationRevertsEverything checks that the step of a cancellation admits pods again and requests
// the lock, and that the node's state is reverted as soon as no older call is in progress.
func cancellationRevertsEverything(r *NodeRecord) (violations []string) {
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
				violations = append(violations, nodeViolation(*cancelled, "pods are refused"))
			}
			if !isHeld {
				violations = append(violations, nodeViolation(*cancelled, "the lock is not requested"))
			}
			if r.Publishes && published != 0 && len(publishes) == 0 {
				violations = append(violations, nodeViolation(*cancelled, "the node's state is not reverted"))
			}
			cancelled = nil
		default:
		}
	}
	return violations
}

// lockIsReleasedOnceInTime checks that each lock is released once, by an announced time that only moves
// earlier. A time that has already passed means now.
func lockIsReleasedOnceInTime(r *NodeRecord) (violations []string) {
	var until time.Time // zero: not announced
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
				violations = append(violations, nodeViolation(f, "it was due at %v", until.Sub(time.Unix(0, 0))))
			}
			if isReleased {
				violations = append(violations, nodeViolation(f, "it was released"))
			}
			if until = f.Until; f.At.After(until) {
				until = f.At
			}
		case NodeRetaken, NodeHeldAgain:
			until, isReleased = time.Time{}, false
		case NodeReleased:
			switch {
			case isReleased:
				violations = append(violations, nodeViolation(f, "it was released before"))
			case until.IsZero() && !isEnding:
				violations = append(violations, nodeViolation(f, "no time was announced for it"))
			case f.At.After(until) && !until.IsZero():
				violations = append(violations, nodeViolation(f, "too late"))
			}
			until, isReleased = time.Time{}, true
		case NodeState:
			if !until.IsZero() && f.At.After(until) && !isEnding {
				violations = append(violations, nodeViolation(f, "the lock is held, and was to be released by %v", until.Sub(time.Unix(0, 0))))
				until = time.Time{}
			}
		default:
		}
	}
	return violations
}
