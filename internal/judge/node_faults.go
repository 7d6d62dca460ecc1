package judge

import "time"

// aFailedKillIsRepeated judges invariant 10: in a drain, 1 s after the failure.
func aFailedKillIsRepeated(r *NodeRecord) (broken []string) {
	failed, calls := map[string]NodeFact{}, map[string]int{}
	state, isEnding := "", false
	for _, f := range r.Facts {
		switch f.What {
		case NodeBegan, NodeDied, NodeRunEnded:
			clear(failed)
			if isEnding = f.What == NodeRunEnded; !isEnding {
				clear(calls)
			}
		case NodeKill:
			calls[f.Pod]++
			delete(failed, f.Pod)
		case NodePodRuns:
			delete(failed, f.Pod)
			delete(calls, f.Pod)
		case NodeKilled:
			calls[f.Pod]--
			if !f.Failed || f.NoRetry {
				delete(failed, f.Pod)
				calls[f.Pod] = 1 << 20 // no other call follows
			} else if calls[f.Pod] == 0 && !isEnding && (state == "draining" || state == "none") {
				failed[f.Pod] = f
			}
		case NodeState:
			if state = f.State; state == "released" {
				clear(failed)
			}
			for pod, at := range failed {
				if f.At.Sub(at.At) > nodeRetry {
					broken = append(broken, nodeBreach(at, "not repeated at %v", f.At.Sub(time.Unix(0, 0))))
					delete(failed, pod)
				}
			}
		case NodeTerminateAll:
			clear(failed)
			isEnding = true
		default:
		}
	}
	return broken
}

// nothingGrows judges invariant 15, and findings X6.
func nothingGrows(r *NodeRecord) (broken []string) {
	pods := map[string]bool{}
	for _, f := range r.Facts {
		if f.What == NodePodRuns {
			pods[f.Pod] = true
		}
		if f.What == NodeState && f.Calls > nodeSpareCalls+3*len(pods) {
			return append(broken, nodeBreach(f, "for %d pods", len(pods)))
		}
	}
	return broken
}

// noBusyLoop judges section 3: Step is due when something has to be done.
func noBusyLoop(r *NodeRecord) (broken []string) {
	idle := 0
	for _, f := range r.Facts {
		switch {
		case f.What == NodeInput, f.What == NodeTicked && f.Effects > 0:
			idle = 0
		case f.What == NodeTicked:
			if idle++; idle > nodeIdleTicks {
				return append(broken, nodeBreach(f, "%d ticks for nothing", idle))
			}
		}
	}
	return broken
}

// noPanic judges that Step does not panic.
func noPanic(r *NodeRecord) (broken []string) {
	for _, f := range r.Facts {
		if f.What == NodePanicked {
			broken = append(broken, nodeBreach(f, "it may not"))
		}
	}
	return broken
}

// calmEndsEveryDrain judges that no drain goes on for ever once nothing is pending.
func calmEndsEveryDrain(r *NodeRecord) (broken []string) {
	state, isEnding := NodeFact{}, false
	for _, f := range r.Facts {
		switch f.What {
		case NodeState:
			state = f
		case NodeBegan:
			isEnding = false
		case NodeRunEnded:
			isEnding = true
		case NodeFinished:
			if state.State != "none" && !isEnding {
				broken = append(broken, nodeBreach(state, "the last state"))
			}
		default:
		}
	}
	return broken
}
