package timeline

import (
	"fmt"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// FromPlan draws a plan. Buckets without pods are left out.
func FromPlan(name string, p plan.Plan) Node {
	n := Node{Name: name, Release: p.Release, Text: p.Warnings}
	for _, planned := range p.Buckets {
		if len(planned.Pods) == 0 {
			continue
		}
		b := Bucket{Name: bucketName(planned.Priority)}
		for _, pod := range planned.Pods {
			row := Pod{
				Name: pod.Pod.Namespace + "/" + pod.Pod.Name, Bad: pod.Truncated(),
				Facts:   fmt.Sprintf("asks for %d s, gets %d s", pod.WantedSeconds, pod.GrantedSeconds),
				Planned: &Bar{Start: pod.Start, End: pod.End},
			}
			if pod.Truncated() {
				row.Planned.Wanted = after(pod.Start, pod.WantedSeconds)
			}
			b.Pods = append(b.Pods, row)
		}
		n.Buckets = append(n.Buckets, b)
	}
	return n
}

// Report puts what has happened beside the plan. A pod that was not planned gets a
// row of its own, at the end of its bucket; of an empty node everything does.
func (n *Node) Report(r shutdown.Report) {
	rows := map[string]*Pod{}
	for i := range n.Buckets {
		for k := range n.Buckets[i].Pods {
			rows[n.Buckets[i].Pods[k].Name] = &n.Buckets[i].Pods[k]
		}
	}
	last := lastOf(r)
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
	n.Text = append(n.Text, describe(r)...)
}

// add makes a row for a pod that was not planned.
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

// report says what became of the pod.
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

// lastOf is the last moment that a report speaks of.
func lastOf(r shutdown.Report) time.Time {
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

// describe says what a report says of the whole shutdown.
func describe(r shutdown.Report) []string {
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

func bucketName(priority int32) string { return fmt.Sprintf("Bucket %d", priority) }

// after saturates.
func after(start time.Duration, seconds int64) time.Duration {
	if seconds > int64((math.MaxInt64-start)/time.Second) {
		return math.MaxInt64
	}
	return start + time.Duration(seconds)*time.Second
}
