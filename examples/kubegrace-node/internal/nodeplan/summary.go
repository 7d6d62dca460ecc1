package nodeplan

import (
	"cmp"
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
		podCounts := countGroups(planned)
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
	byWorkload, byNode := map[string]Loss{}, map[string]Loss{}
	for i := range nodes {
		n := &nodes[i]
		sum.PodCount += n.PodCount
		sum.CutShort += n.CutShort
		sum.LostSeconds = saturatingAdd(sum.LostSeconds, n.LostSeconds)
		for _, pod := range n.pods() {
			byWorkload[pod.workload] = byWorkload[pod.workload].plus(pod)
			byNode[n.Name] = byNode[n.Name].plus(pod)
		}
	}
	sum.Losses = append(worst(ByWorkload, byWorkload), worst(ByNode, byNode)...)
	return Document{APIVersion: APIVersion, Kind: Kind, Header: h, Nodes: nodes, Summary: sum}
}

// plus returns l with one more pod counted.
func (l Loss) plus(pod *Pod) Loss {
	l.PodCount++
	if pod.CutShort {
		l.CutShort++
	}
	l.LostSeconds = saturatingAdd(l.LostSeconds, pod.lostSeconds())
	return l
}

// worst returns the losses with a pod that is cut short, with By and Name set: at most MaxWorst, those that lose most first.
func worst(by string, byName map[string]Loss) (all []Loss) {
	for name, loss := range byName {
		if loss.CutShort > 0 {
			loss.By, loss.Name = by, name
			all = append(all, loss)
		}
	}
	slices.SortFunc(all, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(b.LostSeconds, a.LostSeconds), cmp.Compare(b.CutShort, a.CutShort), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), MaxWorst)]
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

// podGroup stands for the pods of a workload that have the same grace period and are in the same bucket.
type podGroup struct {
	workload     string // the result of workloadOf
	bucket       int    // the index of the bucket
	isCritical   bool
	graceSeconds int64
}

// countGroups counts the pods of each group, on all nodes.
func countGroups(nodes []Node) map[podGroup]int {
	podCounts := map[podGroup]int{}
	for _, n := range nodes {
		for i := range n.Buckets {
			for _, pod := range n.Buckets[i].Pods {
				isCritical := pod.Priority >= plan.SystemCriticalPriority
				podCounts[podGroup{workload: pod.workload, bucket: i, isCritical: isCritical, graceSeconds: pod.OwnSeconds}]++
			}
		}
	}
	return podCounts
}
