package judge

import "time"

// failedKillsAreRepeated checks that a drain repeats a failed kill after 1 s.
func failedKillsAreRepeated(r *NodeRecord) (violations []string) {
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
					violations = append(violations, nodeViolation(at, "not repeated by %v", f.At.Sub(time.Unix(0, 0))))
					delete(failed, pod)
				}
			}
		case NodeTerminateAll:
			clear(failed)
			isEnding = true
		default:
		}
	}
	return violations
}

// callsAreBounded checks that the number of calls in progress is bounded by the number of pods.
func callsAreBounded(r *NodeRecord) (violations []string) {
	pods := map[string]bool{}
	for _, f := range r.Facts {
		if f.What == NodePodRuns {
			pods[f.Pod] = true
		}
		if f.What == NodeState && f.Calls > nodeExtraCalls+3*len(pods) {
			return append(violations, nodeViolation(f, "for %d pods", len(pods)))
		}
	}
	return violations
}

// noBusyLoop checks that Step is due only when there is something to do.
func noBusyLoop(r *NodeRecord) (violations []string) {
	idle := 0
	for _, f := range r.Facts {
		switch {
		case f.What == NodeInput, f.What == NodeTicked && f.Effects > 0:
			idle = 0
		case f.What == NodeTicked:
			if idle++; idle > nodeMaxIdleTicks {
				return append(violations, nodeViolation(f, "%d ticks without an effect", idle))
			}
		}
	}
	return violations
}

// noPanic checks that Step does not panic.
func noPanic(r *NodeRecord) (violations []string) {
	for _, f := range r.Facts {
		if f.What == NodePanicked {
			violations = append(violations, nodeViolation(f, "Step must not panic"))
		}
	}
	return violations
}

// drainsEndWithoutFaults checks that every drain ends once faults have stopped and nothing is pending.
func drainsEndWithoutFaults(r *NodeRecord) (violations []string) {
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
				violations = append(violations, nodeViolation(state, "the drain has not ended"))
			}
		default:
		}
	}
	return violations
}
