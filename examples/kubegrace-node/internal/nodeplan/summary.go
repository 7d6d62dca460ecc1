package nodeplan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// MaxWorst is how many groups of each kind a summary names at most.
const MaxWorst = 10

// The kinds of groups by which losses are summed up.
const (
	ByWorkload = "workload"
	ByNode     = "node"
)

// Document plans nodes, and sums them up.
func (s Settings) Document(nodes []*podlist.Node) Document {
	planned := make([]Node, 0, len(nodes))
	for _, node := range nodes {
		planned = append(planned, s.Plan(node))
	}
	d := documentOf(s.Header(), planned)
	if d.Summary.CutShort > 0 {
		asks := asksOf(planned)
		longer := s.longerSchedule(asks)
		d.Summary.Outliers = outliers(asks, longer)
		d.Summary.Proposals = s.proposals(d.Summary, longer, nodes)
	}
	return d
}

// documentOf sums up nodes, without proposals.
func documentOf(h Header, nodes []Node) Document {
	sum := Summary{NodeCount: len(nodes)}
	type group struct{ by, name string }
	losses := map[group]Loss{}
	for i := range nodes {
		n := &nodes[i]
		sum.PodCount += n.PodCount
		sum.CutShort += n.CutShort
		sum.LostSeconds = saturatingAdd(sum.LostSeconds, n.LostSeconds)
		for _, pod := range n.pods() {
			for _, key := range []group{{ByWorkload, pod.workload}, {ByNode, n.Name}} {
				loss := losses[key]
				loss.By, loss.Name = key.by, key.name
				loss.PodCount++
				if pod.CutShort {
					loss.CutShort++
				}
				loss.LostSeconds = saturatingAdd(loss.LostSeconds, pod.lostSeconds())
				losses[key] = loss
			}
		}
	}
	for _, by := range []string{ByWorkload, ByNode} {
		worst := slices.SortedFunc(maps.Values(losses), func(a, b Loss) int {
			return cmp.Or(cmp.Compare(b.LostSeconds, a.LostSeconds), cmp.Compare(b.CutShort, a.CutShort), cmp.Compare(a.Name, b.Name))
		})
		worst = slices.DeleteFunc(worst, func(loss Loss) bool { return loss.By != by || loss.CutShort == 0 })
		sum.Losses = append(sum.Losses, worst[:min(len(worst), MaxWorst)]...)
	}
	return Document{APIVersion: APIVersion, Kind: Kind, Header: h, Nodes: nodes, Summary: sum}
}

// workloadOf names what a pod is made from. For the ReplicaSet of a Deployment it is the Deployment.
func workloadOf(pod *v1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil && len(pod.OwnerReferences) > 0 {
		owner = &pod.OwnerReferences[0]
	}
	kind, name := "pod", pod.Name
	switch {
	case owner != nil && owner.Kind == "Node":
		kind, name = "static pod", strings.TrimSuffix(pod.Name, "-"+owner.Name)
	case owner != nil:
		kind, name = strings.ToLower(owner.Kind), owner.Name
	}
	if deployment, ok := strings.CutSuffix(name, "-"+pod.Labels["pod-template-hash"]); ok && kind == "replicaset" {
		kind, name = "deployment", deployment
	}
	return pod.Namespace + "/" + kind + "/" + name
}

// ask is what pods of a workload ask for.
type ask struct {
	workload string
	bucket   int // the index of their bucket
	critical bool
	seconds  int64
}

// asksOf returns how many pods ask for what.
func asksOf(nodes []Node) map[ask]int {
	asks := map[ask]int{}
	for _, n := range nodes {
		for i := range n.Buckets {
			for _, pod := range n.Buckets[i].Pods {
				asks[ask{pod.workload, i, pod.Priority >= plan.SystemCriticalPriority, pod.OwnSeconds}]++
			}
		}
	}
	return asks
}
