package node

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// reportDelay is how long a report waits for pods that outlive both the drain and their grace periods: most of them end
// in this time, and the report then has their ends.
const reportDelay = 10 * time.Second

// queueReport queues the report of a shutdown, unless it was made already. makeReports makes it once the shutdown's pods have
// ended.
func (n *Node) queueReport(s *Shutdown) {
	if !s.isReported && !slices.Contains(n.queuedReports, s) {
		n.queuedReports = append(n.queuedReports, s)
	}
}

// makeReports makes the queued reports whose drains are over and whose pods have ended. If pods still run, it waits for them,
// at most until reportDelay after the end of the drain and of all their grace periods.
func (n *Node) makeReports() {
	for _, s := range slices.Clone(n.queuedReports) {
		if isDraining := n.drain.shutdown == s; isDraining {
			continue
		}
		graceEnd := s.Ended
		running := matching(n.pods.all, func(p *Pod) bool { return p.isTerminating() && p.isInReportOf(s) })
		for _, p := range running {
			graceEnd = times.Later(graceEnd, p.Deadline)
		}
		if len(running) == 0 || n.reachedOrWakeAt(graceEnd.Add(reportDelay)) {
			n.reportNow(s)
		}
	}
}

// reportNow makes the report of a shutdown, even if some of its pods still run.
func (n *Node) reportNow(s *Shutdown) {
	n.queuedReports = slices.DeleteFunc(n.queuedReports, func(other *Shutdown) bool { return other == s })
	s.isReported = true
	n.emit(Effect{Do: Report, Shutdown: s, Pods: n.PodsOf(s)})
}

// isInQueuedReport reports whether a report that is still to be made includes p.
func (n *Node) isInQueuedReport(p *Pod) bool {
	return slices.ContainsFunc(n.queuedReports, p.isInReportOf)
}

// PodsOf returns the pods that are in the report of a shutdown, in the order of the kills.
func (n *Node) PodsOf(s *Shutdown) []*Pod { return PodsOf(s, n.pods.all) }

// PodsOf returns those of the given pods that are in the report of a shutdown, in the order of the kills.
func PodsOf(s *Shutdown, pods []*Pod) []*Pod {
	included := matching(pods, func(p *Pod) bool { return p.isInReportOf(s) })
	slices.SortStableFunc(included, func(p, q *Pod) int { return p.Signalled.Compare(q.Signalled) })
	return included
}
