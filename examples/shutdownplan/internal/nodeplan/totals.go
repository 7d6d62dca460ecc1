package nodeplan

import (
	"cmp"
	"slices"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
)

// MaxWorstNodes is how many nodes a summary names.
const MaxWorstNodes = 10

// Totals computes the summary of a cluster. Make it with [Settings.Totals].
type Totals struct {
	settings Settings
	summary  Summary
	longest  []int64 // for each bucket, the longest grace period of its pods
	podLoss  loss    // of the pod that loses most
	hookLoss loss    // of the pod whose hook exceeds the pod's own grace period most
}

// loss is a pod and how many seconds it loses.
type loss struct {
	seconds int64
	pod     Pod
	source  podlist.Pod
}

// Totals makes a Totals without nodes.
func (s Settings) Totals() *Totals {
	return &Totals{settings: s, longest: make([]int64, len(s.schedule))}
}

// Add adds a planned node. source is the node that Plan was called with.
func (t *Totals) Add(n Node, source *podlist.Node) {
	t.summary.NodeCount++
	t.summary.PodCount += n.PodCount
	t.summary.CutShort += n.CutShort
	t.summary.LostSeconds = saturatingAdd(t.summary.LostSeconds, n.LostSeconds)
	for i, bucket := range n.Buckets {
		for k := range bucket.Pods {
			t.longest[i] = max(t.longest[i], bucket.Pods[k].OwnSeconds)
		}
	}
	if n.CutShort == 0 {
		return
	}
	t.addLosses(n, source)
	t.summary.WorstNodes = append(t.summary.WorstNodes, NodeLoss{n.Name, n.PodCount, n.CutShort, n.LostSeconds})
	if len(t.summary.WorstNodes) >= 2*MaxWorstNodes {
		t.keepWorst()
	}
}

// addLosses updates podLoss and hookLoss with the pods of a node.
func (t *Totals) addLosses(n Node, source *podlist.Node) {
	sources := map[string]*podlist.Pod{}
	for i := range source.Pods {
		sources[source.Pods[i].Namespace+"/"+source.Pods[i].Name] = &source.Pods[i]
	}
	for _, bucket := range n.Buckets {
		for _, pod := range bucket.Pods {
			if lost := pod.lostSeconds(); lost > t.podLoss.seconds {
				t.podLoss = loss{lost, pod, *sources[pod.FullName()]}
			}
			for _, hook := range pod.Hooks {
				if hook.Seconds != nil && *hook.Seconds-pod.OwnSeconds > t.hookLoss.seconds {
					t.hookLoss = loss{*hook.Seconds - pod.OwnSeconds, pod, *sources[pod.FullName()]}
				}
			}
		}
	}
}

// keepWorst sorts the nodes by their losses and drops those behind the first MaxWorstNodes.
// Nodes with the same losses stay in their order.
func (t *Totals) keepWorst() {
	slices.SortStableFunc(t.summary.WorstNodes, func(a, b NodeLoss) int {
		return cmp.Or(cmp.Compare(b.LostSeconds, a.LostSeconds), cmp.Compare(b.CutShort, a.CutShort))
	})
	t.summary.WorstNodes = t.summary.WorstNodes[:min(len(t.summary.WorstNodes), MaxWorstNodes)]
}

// Summary returns the summary of the nodes that were added.
func (t *Totals) Summary() Summary {
	t.keepWorst()
	t.summary.Changes = t.changes()
	return t.summary
}
