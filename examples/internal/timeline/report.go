package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Report adds what has happened to the rows of the planned pods. A pod that was not planned
// gets a new row at the end of its bucket; in an empty node all pods do.
func (n *Node) Report(r shutdown.Report) {
	rows := map[string]*Pod{}
	for i := range n.Buckets {
		for k := range n.Buckets[i].Pods {
			rows[n.Buckets[i].Pods[k].Name] = &n.Buckets[i].Pods[k]
		}
	}
	last := lastTime(r)
	for _, pod := range r.Pods {
		row := rows[pod.Namespace+"/"+pod.Name]
		if row == nil {
			row = n.add(pod)
		}
		row.report(pod, r.Started, last)
	}
	n.Release = 0
	if !r.Ended.IsZero() {
		n.Release = max(r.Ended.Sub(r.Started), 0)
	}
	n.Text = append(n.Text, reportText(r)...)
}

// add adds a row for a pod that was not planned.
func (n *Node) add(pod shutdown.PodReport) *Pod {
	row := Pod{Name: pod.Namespace + "/" + pod.Name}
	for i := range n.Buckets {
		if b := &n.Buckets[i]; b.Priority == pod.Bucket {
			b.Pods = append(b.Pods, row)
			return &b.Pods[len(b.Pods)-1]
		}
	}
	n.Buckets = append(n.Buckets, Bucket{Priority: pod.Bucket, Name: fmt.Sprintf("Bucket %d", pod.Bucket), Pods: []Pod{row}})
	return &n.Buckets[len(n.Buckets)-1].Pods[0]
}

// report adds what has happened to the pod in a shutdown that was announced at started. The
// bar of a pod that is not known to have ended is drawn until last.
func (p *Pod) report(r shutdown.PodReport, started, last time.Time) {
	p.Actual = &Bar{Start: r.Started.Sub(started), End: r.Ended.Sub(started)}
	if r.Ended.IsZero() {
		p.Actual.End, p.Actual.Open = last.Sub(started), true
	}
	facts := "got " + duration.Seconds(r.GrantedSeconds)
	if !r.Ended.IsZero() {
		facts += ", took " + duration.Text(r.Ended.Sub(r.Started))
	}
	if p.Facts != "" {
		facts = p.Facts + "; " + facts
	}
	p.Facts, p.Actual.Killed, p.Text = facts, isKilled(r), reportedProblem(r)
	p.Bad = p.Text != "" // what was planned has not happened
}

// isKilled reports whether a pod was killed, and has not stopped by itself.
func isKilled(r shutdown.PodReport) bool {
	return r.Outcome == string(lifecycle.OutcomeGraceExceeded) || r.Outcome == string(lifecycle.OutcomeForced)
}

// reportedProblem says what went wrong in the end of a pod; "": nothing.
func reportedProblem(r shutdown.PodReport) string {
	var problems []string
	switch {
	case r.Error != "":
		problems = append(problems, "It is not known to have ended: "+r.Error)
	case r.Ended.IsZero():
		problems = append(problems, "It is not known to have ended.")
	case r.Outcome == string(lifecycle.OutcomeGraceExceeded):
		problems = append(problems, "It was killed, its time was up.")
	case isKilled(r):
		problems = append(problems, "It was killed, its stop had failed.")
	}
	if r.Unflushed {
		problems = append(problems, "The API server has not acknowledged its final status.")
	}
	return strings.Join(problems, " ")
}

// Summary says in a line what became of the pods of a shutdown.
func Summary(r shutdown.Report) string {
	var killed, unknown []string
	for _, pod := range r.Pods {
		switch name := pod.Namespace + "/" + pod.Name; {
		case pod.Error != "" || pod.Ended.IsZero():
			unknown = append(unknown, name)
		case isKilled(pod):
			killed = append(killed, name)
		}
	}
	return fmt.Sprintf("Pods that stopped in time: %d of %d.", len(r.Pods)-len(killed)-len(unknown), len(r.Pods)) +
		groupText("Killed", killed) + groupText("Not known to have ended", unknown)
}

// groupText names the first pods of a group; "": it has none.
func groupText(what string, pods []string) string {
	if len(pods) == 0 {
		return ""
	}
	text := fmt.Sprintf(" %s: %d, %s", what, len(pods), strings.Join(pods[:min(len(pods), 3)], ", "))
	if more := len(pods) - 3; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "."
}

// lastTime returns the latest time in a report.
func lastTime(r shutdown.Report) time.Time {
	last := r.Started
	if r.Ended.After(last) {
		last = r.Ended
	}
	for _, pod := range r.Pods {
		for _, at := range []time.Time{pod.Started, pod.Ended} {
			if at.After(last) {
				last = at
			}
		}
	}
	return last
}

// reportText returns paragraphs about the shutdown as a whole.
func reportText(r shutdown.Report) []string {
	text := "Announced at " + r.Started.Format(time.RFC3339)
	if r.Origin != "" {
		text += " by " + r.Origin
	}
	switch {
	case r.Cancelled:
		text += "; it was cancelled"
	case r.Ended.IsZero():
		text += "; it has not come to its end"
	}
	return append([]string{text + "."}, r.Errors...)
}
