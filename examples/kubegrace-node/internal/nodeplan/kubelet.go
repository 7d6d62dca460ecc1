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

// withoutStaticClasses returns pods as a kubelet sees them: it goes by spec.priority alone, which admission sets for every
// pod but a static one (k/k#133442), so that the class of a static pod counts for nothing.
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

// prioritySource says where the priority of a pod comes from. An agent has noted it. The API server sets that of every pod
// but a static one, so that it is guessed where neither it nor a known class says it.
func (s Settings) prioritySource(pod *v1.Pod) string {
	class := pod.Spec.PriorityClassName
	hasClass := class == "system-node-critical" || class == "system-cluster-critical"
	if !hasClass && s.options.PriorityOf != nil {
		_, hasClass = s.options.PriorityOf(class)
	}
	switch noted := pod.Annotations[podinfo.PrioritySource]; {
	case noted != "":
		return noted
	case s.agent == Kubelet && isOnlyMirrored(pod):
		return "guessed: the API server's, of the mirror pod"
	case pod.Spec.Priority != nil:
		return "spec"
	case hasClass:
		return "priority class " + class
	case class != "":
		return "guessed: 0, because the priority class " + class + " is not known"
	case staticpod.IsOrMirrors(pod):
		return "manifest without priority: 0"
	default:
		return "guessed: 0, because nothing says it"
	}
}

// isOnlyMirrored reports whether a pod is a mirror pod whose priority the API server has from a class. The kubelet goes by
// that of the manifest, which is not known.
func isOnlyMirrored(pod *v1.Pod) bool {
	return staticpod.IsMirror(pod) && pod.Spec.PriorityClassName != "" && ptr.Deref(pod.Spec.Priority, 0) != 0
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
		warnings = append(warnings, fmt.Sprintf("static pods that are known by their mirror pods only: %d, among them %s/%s; their priority is the API server's, and the kubelet goes by spec.priority of the manifest, which is 0 if it is not set: give the folder of the manifests too",
			len(mirrors), mirrors[0].Namespace, mirrors[0].Name))
	}
	return warnings
}
