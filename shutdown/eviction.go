package shutdown

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// EvictedReason is the reason of a pod that its node has evicted: the Reason of
// the kubelet's eviction manager.
const EvictedReason = "Evicted"

// HardEviction asks a [PodKiller] for the eviction of a pod because a hard
// threshold, or a limit of local storage, was crossed: one second, whatever the pod
// asks for. message says which, to people; it becomes that of the pod and of its
// DisruptionTarget condition (the kubelet's evictPod). Ask [Evictable] first.
func HardEviction(message string) KillRequest {
	return eviction(graceperiod.ForHardEviction(), message)
}

// SoftEviction is [HardEviction] because a soft threshold was crossed for long
// enough: the pod has its own grace period, but no more than
// maxPodGracePeriodSeconds (evictionMaxPodGracePeriod of the kubelet's
// configuration). A negative maximum leaves it its own; see
// [graceperiod.ForSoftEviction], whose result may be 0, which is at once.
func SoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64, message string) KillRequest {
	return eviction(graceperiod.ForSoftEviction(pod, maxPodGracePeriodSeconds), message)
}

func eviction(seconds int64, message string) KillRequest {
	return KillRequest{
		GracePeriodSeconds: seconds,
		Evict:              true,
		SetStatus: func(status *v1.PodStatus) {
			status.Phase = v1.PodFailed
			setDisrupted(status, EvictedReason, message)
		},
	}
}

// Evictable tells whether a node may evict a pod. It never evicts static pods, the
// mirrors that stand for them, and those with a priority of system-cluster-critical
// or more (the kubelet's IsCriticalPod); a nil pod is none to evict.
func Evictable(pod *v1.Pod) bool {
	return pod != nil && !staticpod.IsOrMirrors(pod) && (pod.Spec.Priority == nil || *pod.Spec.Priority < plan.SystemCriticalPriority)
}
