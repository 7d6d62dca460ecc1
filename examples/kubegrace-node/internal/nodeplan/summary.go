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

// MaxWorst is how many workloads, how many nodes and how many outliers a summary names at most.
const MaxWorst = 10

// The values of [Loss.By].
const (
	ByWorkload = "workload"
	ByNode     = "node"
)

// Document plans the shutdown of all nodes and sums up what their pods lose. If a pod is cut short, the
// summary also has proposals, and outliers: workloads whose grace period is too long for the proposed buckets.
func (s Settings) Document(nodes []*podlist.Node) Document {
	planned := make([]Node, 0, len(nodes))
	for _, node := range nodes {
		planned = append(planned, s.Plan(node))
	}
	d := documentOf(s.Header(), planned)
	if d.Summary.CutShort > 0 {
		podCounts := countByAsk(planned)
		longerBuckets := s.longerSchedule(podCounts)
		d.Summary.Outliers = outliers(podCounts, longerBuckets)
		d.Summary.Proposals = s.proposals(d.Summary, longerBuckets, nodes)
	}
	return d
}

// documentOf makes a document of planned nodes and sums up what their pods lose. Proposals and outliers are
// left out.
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
			for _, key := range []group{{ByWorkload, pod.workload}, {ByNode, n.Name}} { // each pod counts in two groups
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

// workloadOf returns NAMESPACE/KIND/NAME of the object that a pod belongs to, so that the losses of its pods
// can be added up. A pod of a Deployment is owned by a ReplicaSet, whose name is that of the Deployment and
// the template hash; its workload is the Deployment. A pod without an owner is its own workload.
func workloadOf(pod *v1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil && len(pod.OwnerReferences) > 0 {
		owner = &pod.OwnerReferences[0]
	}
	kind, name := "pod", pod.Name
	switch {
	case owner != nil && owner.Kind == "Node": // a static pod: the kubelet appends the node's name to that of the manifest
		kind, name = "static pod", strings.TrimSuffix(pod.Name, "-"+owner.Name)
	case owner != nil:
		kind, name = strings.ToLower(owner.Kind), owner.Name
	}
	if deployment, ok := strings.CutSuffix(name, "-"+pod.Labels["pod-template-hash"]); ok && kind == "replicaset" {
		kind, name = "deployment", deployment
	}
	return pod.Namespace + "/" + kind + "/" + name
}

// ask is a grace period that pods of a workload ask for, in the bucket with this index.
type ask struct {
	workload string
	bucket   int
	critical bool
	seconds  int64
}

// countByAsk counts the pods of all nodes by what they ask for.
func countByAsk(nodes []Node) map[ask]int {
	podCounts := map[ask]int{}
	for _, n := range nodes {
		for i := range n.Buckets {
			for _, pod := range n.Buckets[i].Pods {
				isCritical := pod.Priority >= plan.SystemCriticalPriority
				podCounts[ask{workload: pod.workload, bucket: i, critical: isCritical, seconds: pod.OwnSeconds}]++
			}
		}
	}
	return podCounts
}
