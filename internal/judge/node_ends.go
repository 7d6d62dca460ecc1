package judge

import "slices"

// shutdownRefusesPods: the agent refuses to start pods during a shutdown, and after a call of TerminateAll. At all other times
// it admits them.
func (h *nodeHistory) shutdownRefusesPods(state NodeFact) {
	isInShutdown := slices.Contains([]string{
		"awaiting host", // the previous agent's state log has a shutdown, and the host has not said yet whether it goes on
		"draining",
		"released", // the drain is over, and the inhibitor lock is released
	}, state.State)
	if mustRefuse := isInShutdown || h.terminatesAll; state.Refuses != mustRefuse {
		h.addViolation(state, "refuses: %v", state.Refuses)
	}
}

// killedPodsStayRefusedOthersAreReady checks the pods that run at the end of the record. The agent must refuse to start a pod
// again that was killed and still runs. A pod that was not killed must be ready at the API server: a shutdown marks pods as not
// ready before it kills them, and its cancellation must revert that.
func (h *nodeHistory) killedPodsStayRefusedOthersAreReady(end NodeFact) {
	for _, p := range h.pods {
		isRefused := end.Refuses || slices.Contains(end.Pods, p.name)
		isReady := slices.Contains(end.Ready, p.name)
		switch {
		case !p.isRunning:
		case p.isKillLost: // after the power cut the agent cannot know whether it was killed
		case p.wasKilled && !isRefused:
			h.addViolation(end, "%s was signalled, is running, and is not refused", p.name)
		case !p.wasKilled && h.Marks && !isReady:
			h.addViolation(end, "%s is not ready", p.name)
		}
	}
}

// everyEndIsPublished: at the end of the record, the API server has the final status of each killed pod whose end the agent
// knows of.
func (h *nodeHistory) everyEndIsPublished(NodeFact) {
	for _, p := range h.pods {
		if h.Statuses && p.knownEnd.isSet() && !p.hasFinalStatus {
			h.addViolation(p.knownEnd, "the final status of %s is not published", p.name)
		}
	}
}

// onlyEndedPodsArePublished: a final status is sent only for a pod that was killed and has ended.
func (h *nodeHistory) onlyEndedPodsArePublished(status NodeFact) {
	p := h.pod(status.Pod)
	if p.isRunning {
		h.addViolation(status, "it is running")
	}
	if !p.wasKilled {
		h.addViolation(status, "it was not killed")
	}
}

// expectedReport says what an agent must report of a shutdown, and whether it has.
type expectedReport struct {
	killedPods []string // by the shutdown
	isMade     bool     // the agent has reported the newest drain of the shutdown
	isDue      bool     // the drain is over, and the agent has not reported it
}

// eachShutdownIsReportedOnce: an agent reports each drain of a shutdown once, with all pods that the shutdown has killed. The
// drain is over, and the report is due, when the shutdown is cancelled or the lock is released. At the end of the record no
// report may be due.
func (h *nodeHistory) eachShutdownIsReportedOnce(f NodeFact) {
	switch f.What {
	case NodeAgentBegan:
		clear(h.expectedReports)
	case NodeKill:
		r := h.expectedReport(f.Shutdown)
		r.killedPods = append(r.killedPods, f.Pod)
	case NodeCancelled:
		h.expectedReport(f.Shutdown).noteEndOfDrain()
	case NodeReleased:
		h.expectedReport(h.state.Shutdown).noteEndOfDrain()
	case NodeRetaken: // another drain of the shutdown begins
		h.expectedReport(h.state.Shutdown).isMade = false
	case NodeReported:
		h.checkReport(f)
	case NodeFinished:
		for shutdown, r := range h.expectedReports {
			if r.isDue {
				h.addViolation(f, "shutdown %d is not reported", shutdown)
			}
		}
	default:
	}
}

// expectedReport returns what the agent must report of the shutdown with a number. For the number 0, which stands for no
// shutdown, it returns a new value that nobody else sees.
func (h *nodeHistory) expectedReport(shutdown int) *expectedReport {
	if shutdown == 0 {
		return &expectedReport{}
	}
	if h.expectedReports[shutdown] == nil {
		h.expectedReports[shutdown] = &expectedReport{}
	}
	return h.expectedReports[shutdown]
}

// noteEndOfDrain makes the report of a drain due, unless the agent has made it already.
func (r *expectedReport) noteEndOfDrain() { r.isDue = !r.isMade }

// checkReport adds a violation if the drain was reported before, and if the report has a pod twice or lacks a killed pod.
func (h *nodeHistory) checkReport(report NodeFact) {
	expected := h.expectedReport(report.Shutdown)
	if expected.isMade {
		h.addViolation(report, "it was reported before")
	}
	for i, pod := range report.Pods {
		if slices.Contains(report.Pods[:i], pod) {
			h.addViolation(report, "it has a pod twice")
		}
	}
	for _, pod := range expected.killedPods {
		if !slices.Contains(report.Pods, pod) {
			h.addViolation(report, "%s is not in it", pod)
		}
	}
	expected.isMade, expected.isDue = true, false
}

// eachPodIsCountedOnce: in one drain, an agent counts a pod in the metrics at most once, even if several kills of the pod
// return, or if the pod ends after it was counted as given up. A pod that has started again counts as another pod.
func (h *nodeHistory) eachPodIsCountedOnce(count NodeFact) {
	if h.pod(count.Pod).counted.isSet() {
		h.addViolation(count, "it was counted before")
	}
}
