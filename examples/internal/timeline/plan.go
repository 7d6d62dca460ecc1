package timeline

import (
	"fmt"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// FromPlan returns a node with a row for each planned pod. Buckets without pods are left
// out.
func FromPlan(name string, p plan.Plan) Node {
	n := Node{Name: name, Release: p.Release, Text: p.Warnings}
	for _, bucket := range p.Buckets {
		if len(bucket.Pods) == 0 {
			continue
		}
		b := Bucket{Name: bucketName(bucket.Priority)}
		for _, pod := range bucket.Pods {
			b.Pods = append(b.Pods, plannedPod(pod))
		}
		n.Buckets = append(n.Buckets, b)
	}
	return n
}

func plannedPod(pod plan.PodPlan) Pod {
	row := Pod{
		Name: pod.Pod.Namespace + "/" + pod.Pod.Name, Bad: pod.Truncated(),
		Facts:   fmt.Sprintf("asks for %s, gets %s", duration.Seconds(pod.WantedSeconds), duration.Seconds(pod.GrantedSeconds)),
		Planned: &Bar{Start: pod.Start, End: pod.End},
	}
	if pod.Truncated() {
		row.Planned.Wanted = duration.Of(pod.Start.Seconds() + float64(pod.WantedSeconds))
	}
	return row
}

func bucketName(priority int32) string { return fmt.Sprintf("Bucket %d", priority) }
