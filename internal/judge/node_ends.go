package judge

import "slices"

// shutdownRefusesPods: the agent refuses pods while a shutdown is in progress. That includes a shutdown that it knows only
// from the state log of the previous agent, because the host has not answered yet (unsettled), and one whose lock is
// released. After a call of TerminateAll it refuses pods for good. At all other times it admits them.
func (h *nodeHistory) shutdownRefusesPods(f NodeFact) {
	mustRefuse := h.terminatesAll || f.State == "unsettled" || f.State == "draining" || f.State == "released"
	if f.What == NodeState && f.Refuses != mustRefuse {
		h.violation(f, "refuses: %v", f.Refuses)
	}
}

// killedPodsStayRefusedOthersAreReady checks the pods that run at the end. A pod that was signalled must be refused, even
// if its kill was given up, or another agent has begun since. Any other pod is ready unless a shutdown is in progress: a
// shutdown marks pods as not ready before it kills them, and its cancellation must revert that. A pod is not judged if a
// power cut has taken its kill from the log, because the agent then cannot know of the kill.
func (h *nodeHistory) killedPodsStayRefusedOthersAreReady(f NodeFact) {
	if f.What != NodeFinished {
		return
	}
	allRefused, refused, ready := f.Refuses, f.Pods, f.Ready
	mustBeReady := h.Marks && h.state.State == "none"
	for _, p := range h.pods {
		switch {
		case !p.isRunning || p.isKillLost:
		case p.isKilled && !allRefused && !slices.Contains(refused, p.name):
			h.violation(f, "%s was signalled, is running, and is not refused", p.name)
		case !p.isKilled && mustBeReady && !slices.Contains(ready, p.name):
			h.violation(f, "%s is not ready", p.name)
		}
	}
}

// everyEndIsPublished: at the end the API server has the final status of each pod that a kill has ended. That is a pod whose
// kill has succeeded, or a killed pod that ended because the machine did: the next agent knows of the kill from the log.
// A pod needs no final status if a power cut took its kill from the log, if the agent died before it had stored the
// answer to the kill, or if a static pod was started again.
func (h *nodeHistory) everyEndIsPublished(f NodeFact) {
	if f.What != NodeFinished || !h.Statuses {
		return
	}
	for _, p := range h.pods {
		if wasEnded := p.answer.What != ""; wasEnded && !p.hasFinalStatus {
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

// nodeReport says what an agent must report of a shutdown, and whether it has.
type nodeReport struct {
	pods   []string // those that the shutdown has killed
	isMade bool     // the agent has reported the newest drain of the shutdown
	isDue  bool     // the drain is over, and the agent has not reported it
}

// eachShutdownIsReportedOnce: each agent reports each drain of a shutdown once, with every pod that the shutdown has
// killed. A report is due when the shutdown is cancelled or its lock is released, and must be there at the end.
func (h *nodeHistory) eachShutdownIsReportedOnce(f NodeFact) {
	switch f.What {
	case NodeAgentBegan, NodeDied:
		clear(h.reports)
	case NodePodRuns:
		for _, r := range h.reports { // the pod was started again: a later report need not have it
			r.pods = slices.DeleteFunc(r.pods, func(pod string) bool { return pod == f.Pod })
		}
	case NodeReleased, NodeRetaken: // they do not say of which shutdown
		h.updateReport(h.state.Shutdown, f)
	case NodeFinished:
		for shutdown, r := range h.reports {
			if r.isDue {
				h.violation(f, "shutdown %d is not reported", shutdown)
			}
		}
	default:
		h.updateReport(f.Shutdown, f)
	}
}

// updateReport updates what the agent must report of a shutdown (0: the fact is about none), and checks a report.
func (h *nodeHistory) updateReport(shutdown int, f NodeFact) {
	if shutdown == 0 {
		return
	}
	if h.reports[shutdown] == nil {
		h.reports[shutdown] = &nodeReport{}
	}
	report := h.reports[shutdown]
	switch f.What {
	case NodeKill:
		report.pods = append(report.pods, f.Pod)
	case NodeCancelled, NodeReleased: // the drain is over
		report.isDue = !report.isMade
	case NodeRetaken: // another drain of the shutdown begins
		report.isMade = false
	case NodeReported:
		h.checkReport(report, f)
		report.isMade, report.isDue = true, false
	default:
	}
}

// checkReport adds a violation if the agent has reported the drain before, or the report f has a pod twice or lacks a
// pod that was killed.
func (h *nodeHistory) checkReport(due *nodeReport, f NodeFact) {
	if due.isMade {
		h.violation(f, "it was reported before")
	}
	reported := slices.Sorted(slices.Values(f.Pods))
	if withoutRepeats := slices.Compact(slices.Clone(reported)); len(withoutRepeats) < len(reported) {
		h.violation(f, "it has a pod twice")
	}
	for _, pod := range due.pods {
		if !slices.Contains(reported, pod) {
			h.violation(f, "%s is not in it", pod)
		}
	}
}

// eachPodIsCountedOnce: an agent counts a pod in the metrics at most once per drain and run of the pod. It does not count
// the pod again if several kills of it return, or if the pod ends after it was counted as given up (Failed). The pod's
// counted is empty again when a drain begins and when the pod is started again.
//
// There is one exception. An agent may read the log so late that it has dropped a pod, which it has counted as ended and
// which is no longer listed. If the log says that an earlier agent began to kill that pod, this agent continues the kill
// outside a drain, and may count the pod again.
func (h *nodeHistory) eachPodIsCountedOnce(f NodeFact) {
	if f.What == NodeCounted && h.pod(f.Pod).counted.What != "" {
		h.violation(f, "it was counted before")
	}
}
