package shutdown

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

const (
	// TerminatedReason is the status reason of a pod that a node shutdown has ended: the
	// kubelet's nodeShutdownReason.
	TerminatedReason = "Terminated"
	// TerminatedMessage is the message of such a pod and of its DisruptionTarget condition: the
	// kubelet's nodeShutdownMessage.
	TerminatedMessage = "Pod was terminated in response to imminent node shutdown."
)

// PodPolicy says what becomes of the status of the pods that a shutdown has killed.
type PodPolicy string

const (
	// PolicySetTerminal makes the pods Failed unless they are Succeeded, with the kubelet's
	// reason, message and DisruptionTarget condition. It is the default.
	PolicySetTerminal PodPolicy = "SetTerminal"
	// PolicyLeaveAsIs leaves the status unchanged, for a node that comes back with the same pods.
	// A pod that was deleted before does not come back; PolicySetTerminal applies to it.
	PolicyLeaveAsIs PodPolicy = "LeaveAsIs"
	// PolicyDelete sets the status as PolicySetTerminal does and then has the Reporter delete the
	// pods, as a drain by kubectl would. Static pods and pods of a DaemonSet are left as they
	// are.
	PolicyDelete PodPolicy = "Delete"
)

// known reports whether p is one of the policies above.
func (p PodPolicy) known() bool {
	return p == PolicySetTerminal || p == PolicyLeaveAsIs || p == PolicyDelete
}

// of returns the policy for one pod. Like kubectl drain it spares mirror pods and pods of a
// DaemonSet, which would be created again for the same node. A pod that would be left as it is, but
// whose deletion waits for its end, gets the final status all the same.
func (p PodPolicy) of(pod *v1.Pod) PodPolicy {
	if p == PolicyDelete && (staticpod.IsOrMirrors(pod) || ofDaemonSet(pod)) {
		p = PolicyLeaveAsIs
	}
	if p == PolicyLeaveAsIs && pod.DeletionTimestamp != nil {
		p = PolicySetTerminal
	}
	return p
}

func ofDaemonSet(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// setStatus returns the function that applies a policy to the status of a pod of a generation. It is
// never nil.
func (p PodPolicy) setStatus(generation int64) func(*v1.PodStatus) {
	if p == PolicyLeaveAsIs {
		return func(*v1.PodStatus) {}
	}
	return func(status *v1.PodStatus) { setTerminated(status, generation) }
}

// setTerminated does what the status function of the kubelet's killPods does.
func setTerminated(status *v1.PodStatus, generation int64) {
	if status.Phase != v1.PodSucceeded {
		status.Phase = v1.PodFailed
	}
	status.Reason, status.Message = TerminatedReason, TerminatedMessage
	podcondition.Set(status, v1.PodCondition{
		Type:    v1.DisruptionTarget,
		Status:  v1.ConditionTrue,
		Reason:  v1.PodReasonTerminationByKubelet,
		Message: TerminatedMessage,
	}, metav1.Now())
	podcondition.Observe(status, v1.DisruptionTarget, generation)
}

// withFinalStatus returns a copy of the pod with its final status. It has a deletion timestamp if
// the pod is to be deleted.
func withFinalStatus(k *kills.Kill, policy PodPolicy) *v1.Pod {
	pod, state := *k.Pod(), k.State()
	if state.Result.Status != nil {
		pod.Status = *state.Result.Status
	}
	policy.setStatus(podcondition.Generation(&pod))(&pod.Status)
	if policy == PolicyDelete && pod.DeletionTimestamp == nil {
		since := metav1.NewTime(state.Ended)
		if since.IsZero() { // it may still run; it is deleted after the next boot
			since = metav1.NewTime(state.Started)
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &since, &state.Seconds
	}
	return &pod
}

// podToStore returns the part of a pod that is stored with its final status: its identity and the
// names of its containers.
func podToStore(pod *v1.Pod) *v1.Pod {
	stored := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			Generation:                 pod.Generation,
			Annotations:                pod.Annotations,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec:   v1.PodSpec{RestartPolicy: pod.Spec.RestartPolicy, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds},
		Status: pod.Status,
	}
	for _, c := range pod.Spec.InitContainers {
		stored.Spec.InitContainers = append(stored.Spec.InitContainers, v1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range pod.Spec.Containers {
		stored.Spec.Containers = append(stored.Spec.Containers, v1.Container{Name: c.Name})
	}
	for _, c := range pod.Spec.EphemeralContainers {
		stored.Spec.EphemeralContainers = append(stored.Spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: c.Name}})
	}
	return stored
}
