package timeline

import (
	"fmt"
	"math"
	"time"

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
		Facts:   fmt.Sprintf("asks for %d s, gets %d s", pod.WantedSeconds, pod.GrantedSeconds),
		Planned: &Bar{Start: pod.Start, End: pod.End},
	}
	if pod.Truncated() {
		row.Planned.Wanted = saturatingAdd(pod.Start, pod.WantedSeconds)
	}
	return row
}

func bucketName(priority int32) string { return fmt.Sprintf("Bucket %d", priority) }

// saturatingAdd returns start plus a number of seconds, at most the longest duration.
func saturatingAdd(start time.Duration, seconds int64) time.Duration {
	if seconds > int64((math.MaxInt64-start)/time.Second) {
		return math.MaxInt64
	}
	return start + time.Duration(seconds)*time.Second
}
