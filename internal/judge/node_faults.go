package judge

import "time"

// failedKillsAreRepeated checks that the agent repeats a failed kill after 1 s. It need not repeat it if
//   - another kill of the pod is in progress or has succeeded,
//   - an error said that a repetition is useless (NoRetry),
//   - the drain is over, or the agent ends.
func failedKillsAreRepeated(r *NodeRecord) (violations []string) {
	failed := map[string]NodeFact{} // kills that must be repeated, by pod
	calls := map[string]int{}       // calls in progress, by pod
	isOver := map[string]bool{}     // pods that need no kill any more
	state, runHasEnded := "", false
	for _, f := range r.Facts {
		switch f.What {
		case NodeAgentBegan, NodeDied:
			runHasEnded = false
			clear(failed)
			clear(calls)
			clear(isOver)
		case NodeRunEnded, NodeTerminateAll:
			runHasEnded = true
			clear(failed)
		case NodeKill:
			calls[f.Pod]++
			delete(failed, f.Pod)
		case NodePodRuns:
			delete(failed, f.Pod)
			delete(calls, f.Pod)
			delete(isOver, f.Pod)
		case NodeKilled:
			calls[f.Pod]--
			isRetrying := !runHasEnded && (state == "draining" || state == "none")
			if !f.Failed || f.NoRetry {
				isOver[f.Pod] = true
				delete(failed, f.Pod)
			} else if calls[f.Pod] == 0 && !isOver[f.Pod] && isRetrying {
				failed[f.Pod] = f
			}
		case NodeState:
			state = f.State
			if state == "released" {
				clear(failed)
			}
			for pod, answer := range failed {
				if f.At.Sub(answer.At) > nodeRetry {
					violations = append(violations, nodeViolation(answer, "not repeated by %v", f.At.Sub(time.Unix(0, 0))))
					delete(failed, pod)
				}
			}
		default:
		}
	}
	return violations
}

// givenUpKillsAreNotRepeated checks that a drain does not repeat a kill of its own whose error says that a repetition is
// useless. A pod that an earlier agent or drain has signalled is not judged: this drain may continue the kill early, and
// repeat it once when the turn of the pod's bucket comes.
func givenUpKillsAreNotRepeated(r *NodeRecord) (violations []string) {
	type drain struct{ number, shutdown int }
	drains := 0                           // how many have begun, or were cancelled
	signalledEarlier := map[string]bool{} // pods that an earlier agent or drain has signalled
	calls := map[string]int{}             // kills in progress, by pod
	killedBy := map[string]drain{}        // of the newest kill, by pod
	givenUpBy := map[string]drain{}       // of the kill that was given up, by pod
	for _, f := range r.Facts {
		switch f.What {
		case NodeLogged:
			signalledEarlier[f.Pod] = true
		case NodeAgentBegan:
			drains++
			clear(calls)
		case NodeCancelled, NodeRetaken:
			drains++
		case NodePodRuns:
			delete(signalledEarlier, f.Pod)
			delete(calls, f.Pod)
			delete(killedBy, f.Pod)
			delete(givenUpBy, f.Pod)
		case NodeKill:
			current := drain{drains, f.Shutdown}
			if by, isKilled := killedBy[f.Pod]; isKilled && by != current {
				signalledEarlier[f.Pod] = true
			}
			if by, isGivenUp := givenUpBy[f.Pod]; isGivenUp && by == current && !signalledEarlier[f.Pod] {
				violations = append(violations, nodeViolation(f, "its kill was given up"))
			}
			calls[f.Pod]++
			killedBy[f.Pod] = current
		case NodeKilled:
			calls[f.Pod]--
			if f.NoRetry && calls[f.Pod] == 0 {
				givenUpBy[f.Pod] = killedBy[f.Pod]
			}
		default:
		}
	}
	return violations
}

// callsAreBounded checks that calls do not pile up while they hang: at most three for each pod, such as its kills and
// messages about it, and nodeExtraCalls others are in progress.
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

// noBusyLoop checks that the agent does not run Step again and again without an effect. A few ticks without an effect are
// no fault, because a time that has come need not change anything.
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

// drainsEndOnceFaultsStop checks that no drain is in progress at the end of the simulation. By then the faults have
// stopped and nothing is pending, so every drain should have ended. An agent whose Run has ended is exempt.
func drainsEndOnceFaultsStop(r *NodeRecord) (violations []string) {
	state, runHasEnded := NodeFact{}, false
	for _, f := range r.Facts {
		switch f.What {
		case NodeState:
			state = f
		case NodeAgentBegan:
			runHasEnded = false
		case NodeRunEnded:
			runHasEnded = true
		case NodeFinished:
			if state.State != "none" && !runHasEnded {
				violations = append(violations, nodeViolation(state, "the drain has not ended"))
			}
		default:
		}
	}
	return violations
}
