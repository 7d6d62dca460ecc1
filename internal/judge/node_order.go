package judge

import (
	"maps"
	"time"
)

// podIsLoggedBeforeKill checks that a pod's deadline is in the log before the pod is killed, so that the next agent
// knows it if this one dies.
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

// refuseAndPublishBeforeKill checks that a drain kills no pod before new pods are refused and the node's state is
// published. Otherwise a replacement of the pod could be started on this node. A publish call in progress is enough:
// one that hangs must not delay the kill.
func refuseAndPublishBeforeKill(r *NodeRecord) (violations []string) {
	signalled := signalledPods{}
	publishes := map[int]bool{} // publish calls in progress
	published := 0              // the shutdown that was published last; 0: none
	var killsInStep []NodeFact  // the first kills of the current step; its NodeState fact says whether pods are refused
	for _, f := range r.Facts {
		isFirstKill := signalled.add(f)
		switch f.What {
		case NodeAgentBegan:
			clear(publishes)
			published = 0
		case NodePublish:
			publishes[f.Call], published = true, f.Shutdown
		case NodePublished:
			delete(publishes, f.Call)
		case NodeState:
			if !f.Refuses {
				for _, kill := range killsInStep {
					violations = append(violations, nodeViolation(kill, "pods are admitted"))
				}
			}
			killsInStep = killsInStep[:0]
		case NodeDied:
			killsInStep = killsInStep[:0]
		case NodeKill:
			if isFirstKill && f.Shutdown != 0 {
				killsInStep = append(killsInStep, f)
				isPublished := published == f.Shutdown || len(publishes) > 0
				if r.Publishes && !f.Own && !isPublished {
					violations = append(violations, nodeViolation(f, "the node's state is not published"))
				}
			}
		default:
		}
	}
	return violations
}

// logIsSyncedBeforeRelease checks that the lock is released only when the log is safely on disk: each pod
// that this agent was the first to signal must be stored before a sync begins, and that sync must succeed
// before the release. A release that is due, or that follows the end of Run, need not wait for that.
// TerminateAll's own kills do not count, because they are not stored.
func logIsSyncedBeforeRelease(r *NodeRecord) (violations []string) {
	signalled := signalledPods{}
	stored := map[string]int{}   // for each pod, the index of the last fact that stored it
	syncs := map[int]int{}       // for each sync call, the index of the fact that began it
	unsynced := map[string]int{} // signalled pods, with the index of the fact that stored them
	var releaseDue time.Time     // when the release is due
	runHasEnded := false
	for i, f := range r.Facts {
		isFirstKill := signalled.add(f)
		switch f.What {
		case NodeAgentBegan:
			runHasEnded = false
			clear(syncs)
			clear(unsynced)
		case NodeRunEnded:
			runHasEnded = true
		case NodeSuspended:
			releaseDue = f.Until
		case NodeStored:
			stored[f.Pod] = i
		case NodeKill:
			if isFirstKill && f.Shutdown != 0 && !f.Own {
				unsynced[f.Pod] = stored[f.Pod]
			}
		case NodeSync:
			syncs[f.Call] = i
		case NodeSynced:
			maps.DeleteFunc(unsynced, func(_ string, storedIndex int) bool { return storedIndex < syncs[f.Call] })
		case NodeReleased:
			if len(unsynced) > 0 && f.At.Before(releaseDue) && !runHasEnded {
				violations = append(violations, nodeViolation(f, "no sync has succeeded"))
			}
		default:
		}
	}
	return violations
}

// noNewKillAfterCancellation checks that no pod is signalled for the first time after the shutdown was cancelled. A pod
// that was signalled before may be killed again, because its grace period continues.
func noNewKillAfterCancellation(r *NodeRecord) (violations []string) {
	signalled := signalledPods{}
	for _, f := range r.Facts {
		isFirstKill := signalled.add(f)
		if isFirstKill && f.Shutdown == 0 {
			violations = append(violations, nodeViolation(f, "no drain is in progress"))
		}
	}
	return violations
}

// cancellationRevertsEverything checks the step in which a shutdown is cancelled: it must admit pods again, request the
// inhibitor lock, and revert the node's published state, unless an older publish call is in progress. After a call of
// TerminateAll pods stay refused.
func cancellationRevertsEverything(r *NodeRecord) (violations []string) {
	var cancelled *NodeFact
	isHeld, terminatesAll, published, publishes := false, false, 0, map[int]bool{}
	for i, f := range r.Facts {
		switch f.What {
		case NodeAgentBegan:
			cancelled, terminatesAll, published = nil, false, 0
			clear(publishes)
		case NodeTerminateAll:
			terminatesAll = true
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
			if f.Refuses && !terminatesAll {
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

// lockIsReleasedOnceInTime checks that each inhibitor lock is released once, and not after the time that the agent has
// announced. That time only moves earlier. An announced time that has passed means now. When Run ends, the lock may be
// released without an announced time. A lock that is taken again has a new time.
func lockIsReleasedOnceInTime(r *NodeRecord) (violations []string) {
	var releaseBy time.Time // zero: not announced
	isReleased, runHasEnded := false, false
	for _, f := range r.Facts {
		switch f.What {
		case NodeAgentBegan, NodeBooted:
			releaseBy, isReleased, runHasEnded = time.Time{}, false, false
		case NodeDied:
			releaseBy = time.Time{}
		case NodeRunEnded:
			runHasEnded = true
		case NodeSuspended:
			if !releaseBy.IsZero() && f.Until.After(releaseBy) {
				violations = append(violations, nodeViolation(f, "it was due at %v", releaseBy.Sub(time.Unix(0, 0))))
			}
			if isReleased {
				violations = append(violations, nodeViolation(f, "it was released"))
			}
			releaseBy = f.Until
			if f.At.After(releaseBy) {
				releaseBy = f.At
			}
		case NodeRetaken, NodeHeldAgain:
			releaseBy, isReleased = time.Time{}, false
		case NodeReleased:
			switch {
			case isReleased:
				violations = append(violations, nodeViolation(f, "it was released before"))
			case releaseBy.IsZero() && !runHasEnded:
				violations = append(violations, nodeViolation(f, "no time was announced for it"))
			case f.At.After(releaseBy) && !releaseBy.IsZero():
				violations = append(violations, nodeViolation(f, "too late"))
			}
			releaseBy, isReleased = time.Time{}, true
		case NodeState:
			if !releaseBy.IsZero() && f.At.After(releaseBy) && !runHasEnded {
				violations = append(violations, nodeViolation(f, "the lock is held, and was to be released by %v", releaseBy.Sub(time.Unix(0, 0))))
				releaseBy = time.Time{}
			}
		default:
		}
	}
	return violations
}

// obsoleteStepsAreAborted checks that the drain waits for one step at a time, such as Prepare or the unmount. When the next
// step begins, or the drain is over, the call of the last one has returned or was aborted. The end of Run ends all calls.
func obsoleteStepsAreAborted(r *NodeRecord) (violations []string) {
	var step NodeFact // the call in progress; Call is 0 if there is none
	mustBeOver := func(f NodeFact) {
		if step.Call != 0 {
			violations = append(violations, nodeViolation(f, "%s (call %d) goes on", step.Text, step.Call))
			step = NodeFact{}
		}
	}
	for _, f := range r.Facts {
		switch f.What {
		case NodeAgentBegan, NodeRunEnded:
			step = NodeFact{}
		case NodeStep:
			mustBeOver(f)
			step = f
		case NodeStepped, NodeAborted:
			if f.Call == step.Call {
				step = NodeFact{}
			}
		case NodeState:
			if f.Drain == 0 { // no shutdown drains, so the drain is over
				mustBeOver(f)
			}
		default:
		}
	}
	return violations
}
