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

// evictedReason is the status reason of an evicted pod, as set by the kubelet's eviction
// manager.
const evictedReason = "Evicted"

// HardEviction returns the request to evict a pod because of a hard eviction threshold. The
// grace period is 1 s. message becomes the message of the pod's status and of its
// DisruptionTarget condition (the kubelet's evictPod). Call [Evictable] first.
func HardEviction(message string) shutdown.KillRequest {
	return eviction(graceperiod.ImmediateEvictionSeconds, evictedByNode(message))
}

// SoftEviction returns the request to evict a pod because of a soft eviction threshold. The
// grace period is that of [graceperiod.ForSoftEviction] for maxPodGracePeriodSeconds
// (evictionMaxPodGracePeriod in the kubelet's configuration; negative: no maximum). message
// is used as in [HardEviction].
func SoftEviction(pod *v1.Pod, maxPodGracePeriodSeconds int64, message string) shutdown.KillRequest {
	return eviction(graceperiod.ForSoftEviction(pod, maxPodGracePeriodSeconds), evictedByNode(message))
}

// LocalStorageEviction returns the request to evict a pod that exceeds its limit of local
// storage. The grace period is 1 s. The pod gets no DisruptionTarget condition, because the
// pod itself caused the eviction (the kubelet's localStorageEviction).
func LocalStorageEviction(message string) shutdown.KillRequest {
	return eviction(graceperiod.ImmediateEvictionSeconds, evictedStatus(message))
}

// eviction returns the request to evict a pod with a grace period of this many seconds. setStatus sets the pod's final
// status.
func eviction(seconds int64, setStatus func(*v1.PodStatus)) shutdown.KillRequest {
	return shutdown.KillRequest{GracePeriodSeconds: &seconds, Evict: true, SetStatus: setStatus}
}

// evictedStatus returns the SetStatus of an eviction: it makes the pod Failed with the reason Evicted.
func evictedStatus(message string) func(*v1.PodStatus) {
	return func(status *v1.PodStatus) {
		status.Phase, status.Reason, status.Message = v1.PodFailed, evictedReason, message
	}
}

// evictedByNode returns the SetStatus of an eviction because of the node: it makes the pod Failed with the reason Evicted,
// and sets the DisruptionTarget condition, which says that the pod failed because of its node.
func evictedByNode(message string) func(*v1.PodStatus) {
	return func(status *v1.PodStatus) {
		evictedStatus(message)(status)
		podcondition.Set(status, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonTerminationByKubelet, Message: message,
		}, metav1.Now())
	}
}

// Evictable reports whether a node may evict a pod. It may not evict static pods, mirror
// pods, and pods with a priority of system-cluster-critical or more (the kubelet's
// IsCriticalPod). It is false for a nil pod.
func Evictable(pod *v1.Pod) bool {
	if pod == nil || staticpod.IsOrMirrors(pod) {
		return false
	}
	hasCriticalPriority := pod.Spec.Priority != nil && *pod.Spec.Priority >= plan.SystemCriticalPriority
	return !hasCriticalPriority
}
