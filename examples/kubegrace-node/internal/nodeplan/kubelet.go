package nodeplan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// object returns the pod as the agent sees it. A kubelet goes by spec.priority alone, which
// admission sets for every pod but a static one (k/k#133442).
func (s Settings) object(source *podlist.Pod) *v1.Pod {
	pod := source.Object()
	if s.agent == Kubelet && source.Static && !source.HasPriority {
		pod.Spec.PriorityClassName = ""
	}
	return pod
}

// prioritySource says where the priority of a pod comes from. The API server sets that of every pod
// but a static one, so that it is guessed where neither it nor a known class says it.
func (s Settings) prioritySource(pod *podlist.Pod) string {
	const missing = "manifest without priority: 0"
	hasClass := pod.Class == "system-node-critical" || pod.Class == "system-cluster-critical"
	if !hasClass && s.options.PriorityOf != nil {
		_, hasClass = s.options.PriorityOf(pod.Class)
	}
	switch {
	case pod.HasPriority && pod.Mirror && pod.Class != "" && pod.Priority != 0 && s.agent == Kubelet:
		return "guessed: the API server's, of the mirror pod"
	case pod.HasPriority:
		return "spec"
	case pod.Static && (s.agent == Kubelet || pod.Class == ""):
		return missing
	case hasClass:
		return "priority class " + pod.Class
	case pod.Class != "":
		return "guessed: 0, because the priority class " + pod.Class + " is not known"
	default:
		return "guessed: 0, because nothing says it"
	}
}

// kubeletPlan plans what a kubelet with a lock does (killPods of its nodeshutdown manager): one
// bucket after the other, each of which waits for its own seconds at most; a bucket without pods is
// skipped and one without time is not waited for, and what a bucket leaves is lost. The lock goes at
// the end of the last bucket.
func (s Settings) kubeletPlan(pods []*v1.Pod) plan.Plan {
	p := plan.New(s.schedule, pods, plan.Options{PriorityOf: s.options.PriorityOf, NoRollOver: true})
	p.Release = p.Buckets[len(p.Buckets)-1].End
	return p
}

// staticWarnings returns warnings about static pods that are in another bucket than their manifest,
// or their mirror pod, seems to say.
func staticWarnings(node *podlist.Node) []string {
	var classOnly, mirrors []*podlist.Pod
	for i := range node.Pods {
		switch pod := &node.Pods[i]; {
		case pod.Static && pod.Class != "" && !pod.HasPriority:
			classOnly = append(classOnly, pod)
		case pod.Mirror && pod.Class != "" && pod.Priority != 0:
			mirrors = append(mirrors, pod)
		}
	}
	var warnings []string
	if len(classOnly) > 0 {
		warnings = append(warnings, fmt.Sprintf("static pods with a priority class and no priority: %d, among them %s/%s; the kubelet takes them as 0, and kills them first",
			len(classOnly), classOnly[0].Namespace, classOnly[0].Name))
	}
	if len(mirrors) > 0 {
		warnings = append(warnings, fmt.Sprintf("static pods that are known by their mirror pods only: %d, among them %s/%s; their priority is the API server's, and the kubelet goes by spec.priority of the manifest, which is 0 if it is not set: give the folder of the manifests too",
			len(mirrors), mirrors[0].Namespace, mirrors[0].Name))
	}
	return warnings
}
