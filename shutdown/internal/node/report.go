package node

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// reportTime is how long the report of a shutdown waits for pods that outlive it and their grace periods.
const reportTime = 10 * time.Second

// toReport has the report of a shutdown made once the pods that it has killed have ended.
func (n *Node) toReport(s *Shutdown) {
	if !s.isReported && !slices.Contains(n.reports, s) {
		n.reports = append(n.reports, s)
	}
}

// report makes the reports that are due.
func (n *Node) report() {
	for _, s := range slices.Clone(n.reports) {
		if n.drain.of == s {
			continue
		}
		isRunning, until := false, s.Ended
		for _, p := range n.pods.all {
			if p.runs() && p.isOf(s) {
				isRunning, until = true, times.Later(until, p.Deadline)
			}
		}
		if !isRunning || n.passed(until.Add(reportTime)) {
			n.reportNow(s)
		}
	}
}

// reportNow makes a report.
func (n *Node) reportNow(s *Shutdown) {
	n.reports = slices.DeleteFunc(n.reports, func(other *Shutdown) bool { return other == s })
	s.isReported = true
	n.do(Effect{Do: Report, Shutdown: s, Pods: n.PodsOf(s)})
}

// isReported reports whether a report that is due has a pod.
func (n *Node) isReported(p *Pod) bool { return slices.ContainsFunc(n.reports, p.isOf) }

// PodsOf returns the pods that a shutdown has killed, in the order of their kills.
func (n *Node) PodsOf(s *Shutdown) []*Pod { return PodsOf(s, n.pods.all) }

// PodsOf returns those of some pods that a shutdown has killed, in the order of their kills.
func PodsOf(s *Shutdown, pods []*Pod) (of []*Pod) {
	for _, p := range pods {
		if p.isOf(s) {
			of = append(of, p)
		}
	}
	slices.SortStableFunc(of, func(p, q *Pod) int { return p.Signalled.Compare(q.Signalled) })
	return of
}

// Running returns how many pods were signalled and are waited for.
func (n *Node) Running() (running int) {
	for _, p := range n.pods.all {
		if p.runs() {
			running++
		}
	}
	return running
}
