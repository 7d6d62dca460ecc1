package judge

import "slices"

// shutdownRefusesPods: pods are refused during a shutdown and, for good, after TerminateAll was called, and only then.
func (h *nodeHistory) shutdownRefusesPods(f NodeFact) {
	mustRefuse := h.terminatesAll || f.State == "unsettled" || f.State == "draining" || f.State == "released"
	if f.What == NodeState && f.Refuses != mustRefuse {
		h.violation(f, "refuses: %v", f.Refuses)
	}
}

// killedPodsStayRefusedOthersAreReady checks the pods that run at the end. A pod that was signalled must be refused, even
// if its kill was given up, or another agent has begun since. Any other pod is ready unless a shutdown is in progress: a
// shutdown marks pods as not ready before it kills them, and its cancellation must revert that. A pod is left out if a
// power cut has taken its kill from the log.
func (h *nodeHistory) killedPodsStayRefusedOthersAreReady(f NodeFact) {
	if f.What != NodeFinished {
		return
	}
	for _, p := range h.pods {
		if !p.isRunning || p.isLost {
			continue
		}
		if isRefused := f.Refuses || slices.Contains(f.Pods, p.name); p.isKilled && !isRefused {
			h.violation(f, "%s was signalled, is running, and is not refused", p.name)
		}
		if isReady := slices.Contains(f.Ready, p.name); !p.isKilled && h.Marks && h.state.State == "none" && !isReady {
			h.violation(f, "%s is not ready", p.name)
		}
	}
}

// everyEndIsPublished: at the end the API server has the final status of each pod whose kill has succeeded, and of each
// killed pod that ended because the machine did (the next agent knows of the kill from the log). These pods have an
// answer. A pod has none, and needs no final status, if a power cut took its kill from the log, if the agent died before it
// had stored the answer, or if a static pod was started again.
func (h *nodeHistory) everyEndIsPublished(f NodeFact) {
	if f.What != NodeFinished || !h.Statuses {
		return
	}
	for _, p := range h.pods {
		if p.answer.What != "" && !p.isTold {
			h.violation(p.answer, "the final status of %s is not published", p.name)
		}
	}
}

// onlyEndedPodsArePublished: a final status is sent only for a pod that was killed and has ended.
func (h *nodeHistory) onlyEndedPodsArePublished(f NodeFact) {
	if f.What != NodeTold {
		return
	}
	if h.pod(f.Pod).isRunning {
		h.violation(f, "it is running")
	}
	if !h.pod(f.Pod).isKilled {
		h.violation(f, "it was not killed")
	}
}

// nodeReport is what an agent must report of a shutdown.
type nodeReport struct {
	pods   []string // those that it has killed
	isMade bool     // the report of the newest drain
	isDue  bool
}

// eachShutdownIsReportedOnce: each agent reports each drain of a shutdown once, with every pod that the shutdown has
// killed. A report is due when the shutdown is cancelled or its lock is released, and must be there at the end.
func (h *nodeHistory) eachShutdownIsReportedOnce(f NodeFact) {
	shutdown := f.Shutdown
	if f.What == NodeReleased || f.What == NodeRetaken {
		shutdown = h.state.Shutdown
	}
	report := h.reports[shutdown]
	if report == nil {
		report = &nodeReport{}
	}
	switch f.What {
	case NodeAgentBegan, NodeDied:
		clear(h.reports)
		return
	case NodeCancelled, NodeReleased:
		report.isDue = report.isDue || !report.isMade
	case NodeRetaken:
		report.isMade = false
	case NodePodRuns:
		for _, r := range h.reports { // the pod was started again after its report
			r.pods = slices.DeleteFunc(r.pods, func(pod string) bool { return pod == f.Pod })
		}
	case NodeKill:
		report.pods = append(report.pods, f.Pod)
	case NodeReported:
		h.checkReport(report, f)
		report.isMade, report.isDue = true, false
	case NodeFinished:
		for shutdown, r := range h.reports {
			if r.isDue {
				h.violation(f, "shutdown %d is not reported", shutdown)
			}
		}
	default:
	}
	if shutdown != 0 {
		h.reports[shutdown] = report
	}
}

// checkReport adds a violation if a report was made before, has a pod twice, or lacks a pod that was killed.
func (h *nodeHistory) checkReport(due *nodeReport, f NodeFact) {
	if due.isMade {
		h.violation(f, "it was reported before")
	}
	pods := slices.Sorted(slices.Values(f.Pods))
	if len(slices.Compact(slices.Clone(pods))) < len(pods) {
		h.violation(f, "it has a pod twice")
	}
	for _, pod := range due.pods {
		if !slices.Contains(pods, pod) {
			h.violation(f, "%s is not in it", pod)
		}
	}
}

// eachPodIsCountedOnce: an agent counts a pod in the metrics at most once per drain and run of the pod. It does not count
// the pod again if several kills of it return, or if the pod ends after it was counted as given up (Failed).
//
// There is one exception. An agent may read the log so late that it has dropped a pod, which it has counted as ended and
// which is no longer listed. If the log says that an earlier agent began to kill that pod, this agent continues the kill
// outside a drain, and may count the pod again.
func (h *nodeHistory) eachPodIsCountedOnce(f NodeFact) {
	if f.What == NodeCounted && h.pod(f.Pod).counted.What != "" {
		h.violation(f, "it was counted before")
	}
}
