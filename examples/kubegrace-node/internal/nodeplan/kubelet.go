package nodeplan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// withoutStaticClasses returns pods as a kubelet sees them. A kubelet looks at spec.priority only, and never
// at the priority class. The API server's admission sets spec.priority from the class, but a static pod does
// not pass through admission (k/k#133442). The class of a static pod without spec.priority is therefore
// removed.
func withoutStaticClasses(pods []*v1.Pod) []*v1.Pod {
	pods = slices.Clone(pods)
	for i, pod := range pods {
		if staticpod.IsOrMirrors(pod) && pod.Spec.Priority == nil {
			classless := *pod
			classless.Spec.PriorityClassName = ""
			pods[i] = &classless
		}
	}
	return pods
}

// prioritySource returns [Pod.PrioritySource] for a pod. A running agent has noted the source in an
// annotation. Otherwise the source follows from the fields of the pod. The API server sets the priority of
// every pod but a static one, so a pod without a priority and without a known class only gets a guess.
func (s Settings) prioritySource(pod *v1.Pod) string {
	class := pod.Spec.PriorityClassName
	isKnownClass := class == "system-node-critical" || class == "system-cluster-critical"
	if !isKnownClass && s.options.PriorityOf != nil {
		_, isKnownClass = s.options.PriorityOf(class)
	}
	switch noted := pod.Annotations[podinfo.PrioritySource]; {
	case noted != "":
		return noted
	case s.agent == Kubelet && isOnlyMirrored(pod):
		return "guessed: the API server's, of the mirror pod"
	case pod.Spec.Priority != nil:
		return "spec"
	case isKnownClass:
		return "priority class " + class
	case class != "":
		return "guessed: 0, because the priority class " + class + " is not known"
	case staticpod.IsOrMirrors(pod):
		return "manifest without priority: 0"
	default:
		return "guessed: 0, because nothing says it"
	}
}

// isOnlyMirrored reports whether a pod is a mirror pod whose priority was set by the API server from its
// class. The kubelet uses spec.priority of the manifest instead. The input does not have the manifest, so the
// priority is a guess.
func isOnlyMirrored(pod *v1.Pod) bool {
	return staticpod.IsMirror(pod) && pod.Spec.PriorityClassName != "" && ptr.Deref(pod.Spec.Priority, 0) != 0
}

// kubeletPlan plans the drain of a kubelet that holds a lock, by the rules of killPods in its nodeshutdown manager.
// The kubelet drains one bucket after the other, and waits for each at most the bucket's own seconds. A bucket
// without pods takes no time. Time that a bucket does not use is lost. The kubelet releases its lock at the end of
// the last bucket.
func (s Settings) kubeletPlan(pods []*v1.Pod) plan.Plan {
	p := plan.New(s.schedule, pods, plan.Options{PriorityOf: s.options.PriorityOf, NoRollOver: true})
	p.Release = p.Buckets[len(p.Buckets)-1].End
	return p
}

// staticWarnings returns warnings about static pods that a kubelet may drain in another bucket than a reader of
// their manifest or of their mirror pod expects. There is at most one warning for each of the two cases.
func staticWarnings(node *podlist.Node) []string {
	var classOnly, mirrors []*v1.Pod
	for _, pod := range node.Pods {
		switch {
		case staticpod.IsOrMirrors(pod) && pod.Spec.PriorityClassName != "" && pod.Spec.Priority == nil:
			classOnly = append(classOnly, pod)
		case isOnlyMirrored(pod):
			mirrors = append(mirrors, pod)
		}
	}
	var warnings []string
	if len(classOnly) > 0 {
		warnings = append(warnings, fmt.Sprintf("static pods with a priority class and no priority: %d, among them %s/%s; the kubelet takes them as 0, and kills them first",
			len(classOnly), classOnly[0].Namespace, classOnly[0].Name))
	}
	if len(mirrors) > 0 {
		warnings = append(warnings, fmt.Sprintf("static pods that are known by their mirror pods only: %d, among them %s/%s; their priority is the API server's, and the kubelet uses spec.priority of the manifest, which is 0 if it is not set: give the folder of the manifests too",
			len(mirrors), mirrors[0].Namespace, mirrors[0].Name))
	}
	return warnings
}
