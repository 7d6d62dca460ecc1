package timeline

import (
	"fmt"
	"time"

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
	name := bucketName(pod.Bucket)
	row := Pod{Name: pod.Namespace + "/" + pod.Name}
	for i := range n.Buckets {
		if b := &n.Buckets[i]; b.Name == name {
			b.Pods = append(b.Pods, row)
			return &b.Pods[len(b.Pods)-1]
		}
	}
	n.Buckets = append(n.Buckets, Bucket{Name: name, Pods: []Pod{row}})
	return &n.Buckets[len(n.Buckets)-1].Pods[0]
}

// report adds what has happened to the pod in a shutdown that was announced at started. The
// bar of a pod that is not known to have ended is drawn until last.
func (p *Pod) report(r shutdown.PodReport, started, last time.Time) {
	p.Actual = &Bar{Start: r.Started.Sub(started), End: r.Ended.Sub(started)}
	if r.Ended.IsZero() {
		p.Actual.End, p.Actual.Open = last.Sub(started), true
	}
	facts := fmt.Sprintf("got %d s", r.GrantedSeconds)
	if p.Facts != "" {
		facts = p.Facts + "; " + facts
	}
	p.Facts = facts
	if r.Outcome != "" {
		p.Facts += ", " + r.Outcome
	}
	switch {
	case r.Error != "":
		p.Text, p.Bad = r.Error, true
	case r.Ended.IsZero():
		p.Text, p.Bad = "It is not known to have ended.", true
	case r.Unflushed:
		p.Text, p.Bad = "The API server has not acknowledged its final status.", true
	case r.Outcome == string(lifecycle.GraceExceeded):
		p.Text, p.Bad = "It was killed, its time was up.", true
	case r.Outcome == string(lifecycle.Forced):
		p.Text, p.Bad = "It was killed, its stop had failed.", true
	}
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
