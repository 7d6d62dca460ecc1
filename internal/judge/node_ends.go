package judge

import "slices"

// everyEndIsPublished checks that the API server has the final status of every killed pod when the run is over. There
// are two exceptions: a power cut may have taken what was not synced, and a static pod that was started again has no
// final status.
func everyEndIsPublished(r *NodeRecord) (violations []string) {
	if !r.Statuses {
		return nil
	}
	ended := map[string]NodeFact{} // by pod: the answer to its kill, once the agent has finished the step that handles it
	published := map[string]bool{} // by pod: the API server has its final status
	var unprocessed []NodeFact     // answers to kills in the step in progress; lost if the agent dies in it
	for _, f := range r.Facts {
		switch f.What {
		case NodePodRuns:
			delete(published, f.Pod)
			delete(ended, f.Pod)
		case NodePodLost, NodeStarts: // the two exceptions
			delete(ended, f.Pod)
		case NodeKilled:
			if !f.Failed {
				unprocessed = append(unprocessed, f)
			}
		case NodeDied, NodeBooted:
			unprocessed = nil
		case NodeState: // the step is over
			for _, f := range unprocessed {
				ended[f.Pod] = f
			}
			unprocessed = nil
		case NodeTold:
			published[f.Pod] = true
		case NodeFinished:
			for pod, killed := range ended {
				if !published[pod] {
					violations = append(violations, nodeViolation(killed, "its final status is not published"))
				}
			}
		default:
		}
	}
	return violations
}

// storedStatusesAreSentOrKept checks that no final status gets lost: once the log has it as pending, each later state of
// the log has it too, even if agents die or the machine boots, until the API server has it. There are two exceptions:
//
//   - A power cut or another agent has taken it from the log: the fact NodeLogHas is Failed.
//   - The pod was started again, so that it has no final status.
func storedStatusesAreSentOrKept(r *NodeRecord) (violations []string) {
	var stored []string
	isOver := map[string]bool{} // the status was sent, or the pod was started again
	for _, f := range r.Facts {
		switch f.What {
		case NodeTold, NodePodRuns, NodeStarts:
			isOver[f.Pod] = true
		case NodePodEnded:
			isOver[f.Pod] = false
		case NodeLogHas:
			for _, pod := range stored {
				if !f.Failed && !isOver[pod] && !slices.Contains(f.Pods, pod) {
					violations = append(violations, nodeViolation(f, "the pending final status of %s is missing, and was not sent", pod))
				}
			}
			stored = f.Pods
		default:
		}
	}
	return violations
}

// onlyEndedPodsArePublished checks that a final status is sent only for a pod that was killed and has
// ended.
func onlyEndedPodsArePublished(r *NodeRecord) (violations []string) {
	runs, killed := map[string]bool{}, map[string]bool{}
	for _, f := range r.Facts {
		switch f.What {
		case NodePodRuns:
			runs[f.Pod], killed[f.Pod] = true, false
		case NodePodEnded:
			runs[f.Pod] = false
		case NodeKill, NodeLogged:
			killed[f.Pod] = true
		case NodeTold:
			if runs[f.Pod] {
				violations = append(violations, nodeViolation(f, "it is running"))
			}
			if !killed[f.Pod] {
				violations = append(violations, nodeViolation(f, "it was not killed"))
			}
		default:
		}
	}
	return violations
}

// eachShutdownIsReportedOnce checks that each agent reports each shutdown once, with every pod that it
// killed. A shutdown that drains again is reported again. A report is due when the shutdown is cancelled or its lock is
// released, and must be there when the run is over.
func eachShutdownIsReportedOnce(r *NodeRecord) (violations []string) {
	reports, drains := map[int]int{}, map[int]int{} // by shutdown: how many reports, and how many drains after the first
	killed := map[int][]string{}                    // by shutdown: the pods that it has killed
	due := map[int]NodeFact{}                       // shutdowns that must be reported, with the fact that says so
	shutdown := 0                                   // the one in progress; 0: none
	for _, f := range r.Facts {
		switch f.What {
		case NodeAgentBegan, NodeDied:
			clear(reports)
			clear(drains)
			clear(killed)
			clear(due)
			shutdown = 0
		case NodeState:
			shutdown = f.Shutdown
		case NodeCancelled:
			if reports[f.Shutdown] == 0 {
				due[f.Shutdown] = f
			}
		case NodeReleased:
			if shutdown != 0 {
				due[shutdown] = f
			}
		case NodeRetaken:
			drains[shutdown]++
		case NodePodRuns:
			for s := range killed { // the pod was started again after its report
				killed[s] = slices.DeleteFunc(killed[s], func(pod string) bool { return pod == f.Pod })
			}
		case NodeKill:
			if f.Shutdown != 0 {
				killed[f.Shutdown] = append(killed[f.Shutdown], f.Pod)
			}
		case NodeReported:
			delete(due, f.Shutdown)
			reports[f.Shutdown]++
			if reports[f.Shutdown] > 1+drains[f.Shutdown] {
				violations = append(violations, nodeViolation(f, "it was reported before"))
			}
			pods := slices.Sorted(slices.Values(f.Pods))
			if len(slices.Compact(slices.Clone(pods))) < len(pods) {
				violations = append(violations, nodeViolation(f, "it has a pod twice"))
			}
			for _, pod := range killed[f.Shutdown] {
				if !slices.Contains(pods, pod) {
					violations = append(violations, nodeViolation(f, "%s is not in it", pod))
				}
			}
		case NodeFinished:
			for s, ended := range due {
				violations = append(violations, nodeViolation(ended, "shutdown %d is not reported", s))
			}
		default:
		}
	}
	return violations
}

// eachPodIsCountedOnce checks that an agent counts a pod in the metrics at most once per drain and run of the pod. It must
// not count the pod again if several kills of it return, or if the pod ends after it was counted as given up (Failed).
//
// There is one exception. An agent may read the log so late that it has dropped a pod, which it has counted as ended and
// which is no longer listed. If the log says that an earlier agent began to kill that pod, this agent continues the kill
// outside a drain, and may count the pod again.
func eachPodIsCountedOnce(r *NodeRecord) (violations []string) {
	counted := map[string]NodeFact{}
	for _, f := range r.Facts {
		switch f.What {
		case NodeAgentBegan:
			clear(counted)
		case NodeWindows:
			if !f.Planned { // a drain begins
				clear(counted)
			}
		case NodePodRuns:
			delete(counted, f.Pod)
		case NodeKill: // a kill outside a drain is the exception above
			wasDropped := f.Shutdown == 0 && !counted[f.Pod].Failed
			if wasDropped {
				delete(counted, f.Pod)
			}
		case NodeCounted:
			if _, isCounted := counted[f.Pod]; isCounted {
				violations = append(violations, nodeViolation(f, "it was counted before"))
			}
			counted[f.Pod] = f
		default:
		}
	}
	return violations
}

// shutdownRefusesPods checks that pods are refused during a shutdown and, for good, after TerminateAll was called, and
// only then.
func shutdownRefusesPods(r *NodeRecord) (violations []string) {
	terminatesAll := false
	for _, f := range r.Facts {
		switch f.What {
		case NodeAgentBegan:
			terminatesAll = false
		case NodeTerminateAll:
			terminatesAll = true
		case NodeState:
			mustRefuse := terminatesAll || f.State == "unsettled" || f.State == "draining" || f.State == "released"
			if f.Refuses != mustRefuse {
				violations = append(violations, nodeViolation(f, "refuses: %v", f.Refuses))
			}
		default:
		}
	}
	return violations
}

// killedPodsStayRefused checks the end of the run: each pod that was signalled and still runs must be refused, even if its
// kill was given up, or another agent has begun since. A pod is left out if a power cut has taken its kill from the log.
func killedPodsStayRefused(r *NodeRecord) (violations []string) {
	killed, runs := map[string]bool{}, map[string]bool{}
	for _, f := range r.Facts {
		switch f.What {
		case NodePodRuns:
			runs[f.Pod], killed[f.Pod] = true, false
		case NodePodEnded, NodePodLost:
			runs[f.Pod] = false
		case NodeKill:
			killed[f.Pod] = true
		case NodeFinished:
			isRefused := func(pod string) bool { return f.Refuses || slices.Contains(f.Pods, pod) } // all pods are refused, or this one
			for pod := range runs {
				if runs[pod] && killed[pod] && !isRefused(pod) {
					violations = append(violations, nodeViolation(f, "%s was signalled, is running, and is not refused", pod))
				}
			}
		default:
		}
	}
	return violations
}

// survivorsAreReady checks that a running pod that was not killed is ready when the run is over, if no shutdown is in
// progress by then: a shutdown marks pods as not ready before it kills them, and its cancellation must revert that.
func survivorsAreReady(r *NodeRecord) (violations []string) {
	if !r.Marks {
		return nil
	}
	killed, runs, state := map[string]bool{}, map[string]bool{}, ""
	for _, f := range r.Facts {
		switch f.What {
		case NodePodRuns:
			runs[f.Pod], killed[f.Pod] = true, false
		case NodePodEnded, NodePodLost:
			runs[f.Pod] = false
		case NodeKill:
			killed[f.Pod] = true
		case NodeState:
			state = f.State
		case NodeFinished:
			for pod := range runs {
				if runs[pod] && !killed[pod] && state == "none" && !slices.Contains(f.Ready, pod) {
					violations = append(violations, nodeViolation(f, "%s is not ready", pod))
				}
			}
		default:
		}
	}
	return violations
}
