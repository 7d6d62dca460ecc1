package apistatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
)

const (
	// reasonFailed and reasonCompleted are the kubelet's, of the readiness of a pod
	// that has ended.
	reasonFailed    = "PodFailed"
	reasonCompleted = "PodCompleted"
)

// finalStatus is what the status of a pod on the API server becomes. It begins with
// what is there, so that what only other writers know (addresses, readiness gates,
// PodScheduled) stays, and takes over what a node has the last word on.
func finalStatus(server, pod *v1.Pod, now metav1.Time) *v1.PodStatus {
	status := server.Status.DeepCopy()
	final := &pod.Status
	status.InitContainerStatuses = laterContainers(status.InitContainerStatuses, final.InitContainerStatuses)
	status.ContainerStatuses = laterContainers(status.ContainerStatuses, final.ContainerStatuses)
	status.ObservedGeneration = max(status.ObservedGeneration, pod.Generation)
	if !endedByItself(&server.Status, final) {
		takePhase(status, final)
		takeCondition(status, podcondition.Get(final, v1.DisruptionTarget), pod.Generation, now)
	}
	for _, condition := range readiness(status.Phase, final) {
		takeCondition(status, condition, pod.Generation, now)
	}
	return status
}

// endedByItself tells whether a pod had ended on the API server, and not by what
// ends it now: Succeeded is kept, and so is what Failed for a reason of its own, as
// an evicted pod. One that is Failed without a reason is one whose containers were
// seen to end by the stop, and gets the reason for it.
func endedByItself(server, final *v1.PodStatus) bool {
	if server.Phase == v1.PodFailed {
		return server.Reason != "" && server.Reason != final.Reason
	}
	return server.Phase == v1.PodSucceeded
}

// takePhase takes a final phase over, with its reason and message. Any other phase
// is the business of the agent's own loop: a pod that is left as it is may start
// again.
func takePhase(status, final *v1.PodStatus) {
	if !terminal(final.Phase) {
		return
	}
	if status.Phase != v1.PodFailed {
		status.Phase = final.Phase
	}
	status.Reason, status.Message = final.Reason, final.Message
}

// readiness gives the conditions that follow from the end of a pod: those of the
// kubelet's mergePodStatus for a final phase. Besides, what the node says is taken
// over unless it says ready: that is older than the end of the pod.
func readiness(phase v1.PodPhase, final *v1.PodStatus) []*v1.PodCondition {
	var conditions []*v1.PodCondition
	for _, of := range []v1.PodConditionType{v1.PodReadyToStartContainers, v1.ContainersReady, v1.PodReady} {
		condition := podcondition.Get(final, of)
		if terminal(phase) && of != v1.PodReadyToStartContainers {
			condition = &v1.PodCondition{Type: of, Status: v1.ConditionFalse, Reason: reasonOf(phase)}
		}
		if condition != nil && condition.Status != v1.ConditionTrue {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// reasonOf is the reason why a pod that has ended is not ready.
func reasonOf(phase v1.PodPhase) string {
	if phase == v1.PodSucceeded {
		return reasonCompleted
	}
	return reasonFailed
}

// takeCondition takes a condition over, if there is one, as observed at a generation
// of the pod; 0: that is not known. The latest generation that anyone has observed
// counts: one is never taken back.
func takeCondition(status *v1.PodStatus, condition *v1.PodCondition, generation int64, now metav1.Time) {
	if condition == nil {
		return
	}
	podcondition.Set(status, *condition, now)
	taken := podcondition.Get(status, condition.Type)
	taken.ObservedGeneration = max(taken.ObservedGeneration, condition.ObservedGeneration, generation)
}

// laterContainers takes the containers' statuses of a node over, by name. What the
// API server knows of a later state of the same container is kept: the agent's own
// loop may have told it how the container ended.
func laterContainers(server, final []v1.ContainerStatus) []v1.ContainerStatus {
	merged := slices.Clone(server)
	for _, status := range final {
		i := slices.IndexFunc(merged, func(known v1.ContainerStatus) bool { return known.Name == status.Name })
		switch {
		case i < 0:
			merged = append(merged, status)
		case !outdated(&status, &merged[i]):
			merged[i] = status
		}
	}
	return merged
}

// outdated tells whether a container has gone on since a status: it was started
// again, or it has ended.
func outdated(status, known *v1.ContainerStatus) bool {
	if status.RestartCount != known.RestartCount {
		return status.RestartCount < known.RestartCount
	}
	return known.State.Terminated != nil && status.State.Terminated == nil
}

// terminal tells whether a phase is one that no pod leaves.
func terminal(phase v1.PodPhase) bool {
	return phase == v1.PodFailed || phase == v1.PodSucceeded
}
