package podkiller

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// EvictedReason is the reason of a pod that its node has evicted: the Reason of
// the kubelet's eviction manager.
const EvictedReason = "Evicted"

// HardEviction asks a [shutdown.PodKiller] for the eviction of a pod because a hard
// threshold was crossed: one second, whatever the pod asks for. message says which, to
// people; it becomes that of the pod and of its DisruptionTarget condition (the
// kubelet's evictPod). Ask [Evictable] first.
func HardEviction(message string) shutdown.KillRequest {
	return eviction(graceperiod.ImmediateEvictionSeconds, disrupted(message))
}

// SoftEviction is [HardEviction] because a soft threshold was crossed for long
// enough: the pod has its own grace period, but no more than
// maxPodGracePeriodSeconds (evictionMaxPodGracePeriod of the kubelet's
// configuration). A negative maximum leaves it its own; see
// [graceperiod.ForSoftEviction], whose result may be 0, which is at once.
func SoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64, message string) shutdown.KillRequest {
	return eviction(graceperiod.ForSoftEviction(pod, maxPodGracePeriodSeconds), disrupted(message))
}

// LocalStorageEviction is [HardEviction] because the pod has used more local storage
// than it may. That is the pod's own doing and no disruption: it gets no DisruptionTarget
// condition (the kubelet's localStorageEviction).
func LocalStorageEviction(message string) shutdown.KillRequest {
	return eviction(graceperiod.ImmediateEvictionSeconds, failed(message))
}

func eviction(seconds int64, set func(*v1.PodStatus)) shutdown.KillRequest {
	return shutdown.KillRequest{GracePeriodSeconds: seconds, Evict: true, SetStatus: set}
}

// failed makes a pod one that was evicted.
func failed(message string) func(*v1.PodStatus) {
	return func(status *v1.PodStatus) {
		status.Phase, status.Reason, status.Message = v1.PodFailed, EvictedReason, message
	}
}

// disrupted is failed that says that its node has ended the pod.
func disrupted(message string) func(*v1.PodStatus) {
	return func(status *v1.PodStatus) {
		failed(message)(status)
		podcondition.Set(status, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonTerminationByKubelet, Message: message,
		}, metav1.Now())
	}
}

// Evictable tells whether a node may evict a pod. It never evicts static pods, the
// mirrors that stand for them, and those with a priority of system-cluster-critical
// or more (the kubelet's IsCriticalPod); a nil pod is none to evict.
func Evictable(pod *v1.Pod) bool {
	return pod != nil && !staticpod.Is(pod) && !staticpod.IsMirror(pod) &&
		(pod.Spec.Priority == nil || *pod.Spec.Priority < plan.SystemCriticalPriority)
}
