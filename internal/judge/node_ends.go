package judge

import "slices"

// everyEndThatWasReachedIsTold judges invariant 9: once the API server answers again. A power cut may take what was not synced. A static pod that asks
// to start withdraws its end.
func everyEndThatWasReachedIsTold(r *NodeRecord) (broken []string) {
	if !r.Statuses {
		return nil
	}
	known, told := map[string]NodeFact{}, map[string]bool{}
	var heard []NodeFact // in the step that is not over
	for _, f := range r.Facts {
		switch f.What {
		case NodePodRuns:
			delete(told, f.Pod)
			delete(known, f.Pod)
		case NodePodLost, NodeStarts:
			delete(known, f.Pod)
		case NodeKilled:
			if !f.Failed {
				heard = append(heard, f)
			}
		case NodeDied, NodeBooted:
			heard = nil
		case NodeState:
			for _, f := range heard {
				known[f.Pod] = f
			}
			heard = nil
		case NodeTold:
			told[f.Pod] = true
		case NodeFinished:
			for pod, killed := range known {
				if !told[pod] {
					broken = append(broken, nodeBreach(killed, "the API server is not told"))
				}
			}
		default:
		}
	}
	return broken
}

// noEndThatWasNotReachedIsTold judges invariants 4 and 9.
func noEndThatWasNotReachedIsTold(r *NodeRecord) (broken []string) {
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
				broken = append(broken, nodeBreach(f, "it runs"))
			}
			if !killed[f.Pod] {
				broken = append(broken, nodeBreach(f, "nobody has killed it"))
			}
		default:
		}
	}
	return broken
}

// eachShutdownIsReportedOnce judges invariant 9: by each agent. A shutdown that drains again is reported again.
func eachShutdownIsReportedOnce(r *NodeRecord) (broken []string) {
	reports, drains, killed, due := map[int]int{}, map[int]int{}, map[int][]string{}, map[int]NodeFact{}
	shutdown := 0
	for _, f := range r.Facts {
		switch f.What {
		case NodeBegan, NodeDied:
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
			for s := range killed { // it has begun anew, and its report was made
				killed[s] = slices.DeleteFunc(killed[s], func(pod string) bool { return pod == f.Pod })
			}
		case NodeKill:
			if f.Shutdown != 0 {
				killed[f.Shutdown] = append(killed[f.Shutdown], f.Pod)
			}
		case NodeReported:
			delete(due, f.Shutdown)
			if reports[f.Shutdown]++; reports[f.Shutdown] > 1+drains[f.Shutdown] {
				broken = append(broken, nodeBreach(f, "it was reported before"))
			}
			pods := slices.Sorted(slices.Values(f.Pods))
			if len(slices.Compact(slices.Clone(pods))) < len(pods) {
				broken = append(broken, nodeBreach(f, "a pod twice"))
			}
			for _, pod := range killed[f.Shutdown] {
				if !slices.Contains(pods, pod) {
					broken = append(broken, nodeBreach(f, "%s is not in it", pod))
				}
			}
		case NodeFinished:
			for s, ended := range due {
				broken = append(broken, nodeBreach(ended, "shutdown %d is not reported", s))
			}
		default:
		}
	}
	return broken
}

// aShutdownRefusesPods judges section 3.
func aShutdownRefusesPods(r *NodeRecord) (broken []string) {
	isEnding := false
	for _, f := range r.Facts {
		switch f.What {
		case NodeBegan:
			isEnding = false
		case NodeTerminateAll:
			isEnding = true
		case NodeState:
			if want := isEnding || f.State == "unsettled" || f.State == "draining" || f.State == "released"; f.Refuses != want {
				broken = append(broken, nodeBreach(f, "refuses: %v", f.Refuses))
			}
		default:
		}
	}
	return broken
}

// nobodyIsForgotten judges invariant 9: who was signalled and runs is refused, by each later agent too.
func nobodyIsForgotten(r *NodeRecord) (broken []string) {
	killed, runs := map[string]bool{}, map[string]bool{}
	for _, f := range r.Facts {
		switch f.What {
		case NodePodRuns:
			runs[f.Pod], killed[f.Pod] = true, false
		case NodePodEnded, NodePodLost:
			runs[f.Pod] = false
		case NodeKill:
			killed[f.Pod] = true
		case NodeKilled:
			killed[f.Pod] = killed[f.Pod] && !f.NoRetry
		case NodeFinished:
			for pod := range runs {
				if runs[pod] && killed[pod] && !f.Refuses && !slices.Contains(f.Pods, pod) {
					broken = append(broken, nodeBreach(f, "%s was signalled, runs, and is not refused", pod))
				}
			}
		default:
		}
	}
	return broken
}

// whoeverLivesOnIsReady judges section 6: a mark is taken back if the pod lives on.
func whoeverLivesOnIsReady(r *NodeRecord) (broken []string) {
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
					broken = append(broken, nodeBreach(f, "%s is not ready", pod))
				}
			}
		default:
		}
	}
	return broken
}
