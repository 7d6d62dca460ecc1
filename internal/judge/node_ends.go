package judge

import "slices"

// shutdownRefusesPods: the agent refuses pods while a shutdown is in progress. That includes a shutdown that it knows only
// from the state log of the previous agent, because the host has not answered yet ("awaiting host"), and one whose lock is
// released. After a call of TerminateAll it refuses pods for good. At all other times it admits them.
func (h *nodeHistory) shutdownRefusesPods(state NodeFact) {
	mustRefuse := h.terminatesAll || state.State == "awaiting host" || state.State == "draining" || state.State == "released"
	if state.Refuses != mustRefuse {
		h.violation(state, "refuses: %v", state.Refuses)
	}
}

// killedPodsStayRefusedOthersAreReady checks the pods that run at the end. A pod that was signalled must be refused, even
// if its kill was given up, or another agent has begun since. Any other pod is ready: a shutdown marks pods as not ready before
// it kills them, and its cancellation must revert that.
func (h *nodeHistory) killedPodsStayRefusedOthersAreReady(end NodeFact) {
	for _, p := range h.pods {
		isRefused := end.Refuses || slices.Contains(end.Pods, p.name)
		isReady := slices.Contains(end.Ready, p.name)
		switch {
		case !p.isRunning:
		case p.isKillLost: // after a power cut the agent cannot know whether it was signalled
		case p.isKilled && !isRefused:
			h.violation(end, "%s was signalled, is running, and is not refused", p.name)
		case !p.isKilled && h.Marks && !isReady:
			h.violation(end, "%s is not ready", p.name)
		}
	}
}

// everyEndIsPublished: at the end the API server has the final status of each killed pod that the agent knows to have ended:
// its kill has succeeded, or the machine has ended it, and the log says that it was killed.
func (h *nodeHistory) everyEndIsPublished(NodeFact) {
	for _, p := range h.pods {
		if h.Statuses && p.knownEnd.isSet() && !p.hasFinalStatus {
			h.violation(p.knownEnd, "the final status of %s is not published", p.name)
		}
	}
}

// onlyEndedPodsArePublished: a final status is sent only for a pod that was killed and has ended.
func (h *nodeHistory) onlyEndedPodsArePublished(status NodeFact) {
	p := h.pod(status.Pod)
	if p.isRunning {
		h.violation(status, "it is running")
	}
	if !p.isKilled {
		h.violation(status, "it was not killed")
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
	case NodeAgentBegan:
		clear(h.reports)
	case NodeKill:
		r := h.report(f.Shutdown)
		r.pods = append(r.pods, f.Pod)
	case NodeCancelled:
		h.report(f.Shutdown).end()
	case NodeReleased:
		h.report(h.state.Shutdown).end()
	case NodeRetaken: // another drain of the shutdown begins
		h.report(h.state.Shutdown).isMade = false
	case NodeReported:
		h.checkReport(f)
	case NodeFinished:
		for shutdown, r := range h.reports {
			if r.isDue {
				h.violation(f, "shutdown %d is not reported", shutdown)
			}
		}
	default:
	}
}

// report returns what the agent must report of a shutdown. For 0, which stands for no shutdown, nothing is kept.
func (h *nodeHistory) report(shutdown int) *nodeReport {
	r := h.reports[shutdown]
	if r == nil {
		r = &nodeReport{}
	}
	if shutdown != 0 {
		h.reports[shutdown] = r
	}
	return r
}

// end notes that a drain is over.
func (r *nodeReport) end() { r.isDue = !r.isMade }

// checkReport adds a violation if a drain was reported before, or its report has a pod twice or lacks a pod that was killed.
func (h *nodeHistory) checkReport(report NodeFact) {
	due := h.report(report.Shutdown)
	if due.isMade {
		h.violation(report, "it was reported before")
	}
	for i, pod := range report.Pods {
		if slices.Contains(report.Pods[:i], pod) {
			h.violation(report, "it has a pod twice")
		}
	}
	for _, pod := range due.pods {
		if !slices.Contains(report.Pods, pod) {
			h.violation(report, "%s is not in it", pod)
		}
	}
	due.isMade, due.isDue = true, false
}

// eachPodIsCountedOnce: an agent counts a pod in the metrics at most once per drain and run of the pod. It does not count
// the pod again if several kills of it return, or if the pod ends after it was counted as given up.
func (h *nodeHistory) eachPodIsCountedOnce(count NodeFact) {
	if h.pod(count.Pod).counted.isSet() {
		h.violation(count, "it was counted before")
	}
}
