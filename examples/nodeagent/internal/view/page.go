package view

import (
	"fmt"
	"io"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/timeline"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

// Page writes a report as an HTML page, with a timeline of what was planned and what has
// happened. A nil plan means that the plan is not known. A shutdown that is under way is
// drawn up to the last event of its report.
func Page(out io.Writer, r api.Report, planned *api.Plan) error {
	node := timeline.Node{}
	if planned != nil {
		node.Buckets = plannedBuckets(*planned)
	}
	node.Report(r.Shutdown)
	return timeline.Page{Title: "Shutdown of this node", Text: []string{timeline.Summary(r.Shutdown)}, Nodes: []timeline.Node{node}}.Write(out)
}

// plannedBuckets returns the buckets of a plan as a timeline shows them. They have the
// names that timeline.Node.Report gives to buckets.
func plannedBuckets(p api.Plan) []timeline.Bucket {
	var buckets []timeline.Bucket
	for _, b := range p.Buckets {
		bucket := timeline.Bucket{Name: fmt.Sprintf("Bucket %d", b.Priority)}
		for _, pod := range b.Pods {
			bar := timeline.Bar{Start: fromSeconds(pod.StartSeconds), End: fromSeconds(pod.EndSeconds)}
			if pod.CutShort {
				bar.Wanted = bar.Start + time.Duration(pod.WantedSeconds)*time.Second
			}
			bucket.Pods = append(bucket.Pods, timeline.Pod{
				Name: pod.Namespace + "/" + pod.Name, Bad: pod.CutShort, Planned: &bar,
				Facts: fmt.Sprintf("asks for %d s, gets %d s", pod.WantedSeconds, pod.GrantedSeconds),
			})
		}
		if len(bucket.Pods) > 0 {
			buckets = append(buckets, bucket)
		}
	}
	return buckets
}

func fromSeconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
