package nodeplan

import (
	"cmp"
	"slices"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
)

// WorstNodes is how many nodes a summary names.
const WorstNodes = 10

// Totals adds up the nodes of a cluster.
type Totals struct {
	settings Settings
	summary  Summary
	needs    []int64 // of each bucket, the longest grace period of its pods
	worst    loss    // the pod that gets the least of what it asks for
	hook     loss    // the pod whose hook is the farthest beyond its own grace period
}

// loss is a pod and how much it loses.
type loss struct {
	seconds int64
	pod     Pod
	read    podlist.Pod
}

// Totals begins to add up.
func (s Settings) Totals() *Totals {
	return &Totals{settings: s, needs: make([]int64, len(s.schedule))}
}

// Add adds a node, and the pods that it was planned for.
func (t *Totals) Add(n Node, read *podlist.Node) {
	t.summary.NodeCount++
	t.summary.PodCount += n.PodCount
	t.summary.CutShort += n.CutShort
	t.summary.LostSeconds = add(t.summary.LostSeconds, n.LostSeconds)
	for i, bucket := range n.Buckets {
		for k := range bucket.Pods {
			t.needs[i] = max(t.needs[i], bucket.Pods[k].OwnSeconds)
		}
	}
	if n.CutShort == 0 {
		return
	}
	t.addLosses(n, read)
	t.summary.WorstNodes = append(t.summary.WorstNodes, NodeLoss{n.Name, n.PodCount, n.CutShort, n.LostSeconds})
	if len(t.summary.WorstNodes) >= 2*WorstNodes {
		t.keepWorst()
	}
}

// addLosses looks for the pods that lose most.
func (t *Totals) addLosses(n Node, read *podlist.Node) {
	pods := map[string]*podlist.Pod{}
	for i := range read.Pods {
		pods[read.Pods[i].Namespace+"/"+read.Pods[i].Name] = &read.Pods[i]
	}
	for _, bucket := range n.Buckets {
		for _, pod := range bucket.Pods {
			if lost := pod.lost(); lost > t.worst.seconds {
				t.worst = loss{lost, pod, *pods[pod.FullName()]}
			}
			for _, hook := range pod.Hooks {
				if hook.Seconds != nil && *hook.Seconds-pod.OwnSeconds > t.hook.seconds {
					t.hook = loss{*hook.Seconds - pod.OwnSeconds, pod, *pods[pod.FullName()]}
				}
			}
		}
	}
}

// keepWorst keeps the nodes that lose most, the worst first; nodes that lose as much
// stay in their order.
func (t *Totals) keepWorst() {
	slices.SortStableFunc(t.summary.WorstNodes, func(a, b NodeLoss) int {
		return cmp.Or(cmp.Compare(b.LostSeconds, a.LostSeconds), cmp.Compare(b.CutShort, a.CutShort))
	})
	t.summary.WorstNodes = t.summary.WorstNodes[:min(len(t.summary.WorstNodes), WorstNodes)]
}

// Summary is the sum so far.
func (t *Totals) Summary() Summary {
	t.keepWorst()
	t.summary.Changes = t.changes()
	return t.summary
}
