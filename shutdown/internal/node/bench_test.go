package node_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// BenchmarkDrain drains pods that end at once, with an API server that answers at once.
func BenchmarkDrain(b *testing.B) {
	for _, pods := range []int{110, 1000, 10_000} {
		b.Run(strconv.Itoa(pods), func(b *testing.B) {
			listed := make([]node.Pod, pods)
			for i := range listed {
				listed[i] = rigPod(fmt.Sprintf("pod-%d", i))
				listed[i].Priority = int32(i % 2 * 1000) //nolint:gosec // 0 or 1000
			}
			b.ReportAllocs()
			for b.Loop() {
				drainOnce(b, listed)
			}
		})
	}
}

// drainOnce drains a node from the announcement to the release. Each call succeeds as soon as it is made, so that the
// benchmark measures package node alone.
func drainOnce(b *testing.B, listed []node.Pod) {
	c := node.Config{Schedule: plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}}
	c.Options.Steps = plan.Steps{Publish: true, Readiness: true, Statuses: true}
	n := node.New(c)
	now := time.Unix(100, 0)
	ended := map[node.Key]bool{}
	queue := []node.Input{node.Read{SameBoot: true}, node.Event{Event: source.Event{Deadline: now.Add(time.Minute)}, Host: true}}
	for len(queue) > 0 {
		in := queue[0]
		queue = queue[1:]
		for _, e := range n.Step(now, in) {
			switch e.Do {
			case node.List:
				in := node.Listed{Call: e.Call}
				for i := range listed {
					if !ended[listed[i].Key] {
						in.Pods = append(in.Pods, listed[i])
					}
				}
				queue = append(queue, in)
			case node.Kill:
				ended[e.Pod.Key] = true
				queue = append(queue, node.Killed{Call: e.Call, Key: e.Pod.Key, Outcome: "Graceful"})
			case node.Tell:
				queue = append(queue, node.Told{Call: e.Call, Key: e.Pod.Key})
			case node.Publish:
				queue = append(queue, node.Published{Call: e.Call})
			case node.Sync, node.OnRelease:
				queue = append(queue, node.Answered{Call: e.Call})
			default:
			}
		}
	}
	if n.State() != node.StateReleased || len(ended) != len(listed) {
		b.Fatal(n.State(), len(ended))
	}
}
