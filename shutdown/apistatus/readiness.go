package apistatus

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/staticpod"
)

const (
	// ReasonTakenOut is the reason of the Ready condition that MarkNotReady sets.
	// [MessageTakenOut] distinguishes it from other uses of that reason.
	ReasonTakenOut = v1.PodReasonTerminationByKubelet
	// MessageTakenOut is the message of the Ready condition that MarkNotReady sets.
	MessageTakenOut = "Pod is being terminated by its node."

	// reasonContainers and reasonGates are the kubelet's reasons for a pod that is not
	// ready.
	reasonContainers = "ContainersNotReady"
	reasonGates      = "ReadinessGatesNotReady"
)

// MarkNotReady removes a pod from its services before it is stopped: it sets the Ready
// condition to False with [ReasonTakenOut] and [MessageTakenOut], in one patch with the
// pod's UID as its precondition. It sends nothing for a pod that has ended or is not
// ready already. An agent whose own loop writes the pod's status must keep that condition
// until the pod has ended.
//
// It makes one attempt and returns errors as [Reporter.FlushPod] does. It returns nil if
// the pod is gone.
func (r *Reporter) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	if pod != nil {
		ready := podcondition.Get(&pod.Status, v1.PodReady)
		if terminal(pod.Status.Phase) || ready != nil && ready.Status != v1.ConditionTrue {
			return nil
		}
	}
	target, err := r.identify(ctx, pod)
	if err != nil || target == nil {
		return err
	}
	taken := &v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: ReasonTakenOut, Message: MessageTakenOut}
	return r.patchReady(ctx, target, newConditionPatch(&pod.Status, taken, podcondition.Generation(pod), metav1.Now()))
}

// RestoreReadiness undoes MarkNotReady: it sets the Ready condition to what the
// containers and readiness gates say. It changes nothing if MarkNotReady has not set the
// condition, or if the pod has ended or is gone.
//
// It reads the pod first, and the version that was read is the precondition of the patch.
// If somebody else has written in between, the error is a conflict, and the caller may
// try again.
func (r *Reporter) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	if err := validatePod(pod); err != nil {
		return err
	}
	server, err := r.read(ctx, pod)
	if server == nil {
		return err
	}
	restored := restoredReady(server)
	if restored == nil || terminal(server.Status.Phase) {
		return nil
	}
	target := &object{
		namespace: pod.Namespace, name: pod.Name, uid: server.UID, resourceVersion: server.ResourceVersion,
		static: staticpod.IsMirror(server),
	}
	return r.patchReady(ctx, target, newConditionPatch(&server.Status, restored, podcondition.Generation(pod), metav1.Now()))
}

// patchReady patches the Ready condition of a pod.
func (r *Reporter) patchReady(ctx context.Context, target *object, ready conditionPatch) error {
	_, err := r.patch(ctx, target, statusPatch{Conditions: []conditionPatch{ready}})
	return err
}

// isTakenOut reports whether MarkNotReady has set this Ready condition.
func isTakenOut(ready *v1.PodCondition) bool {
	return ready.Status == v1.ConditionFalse && ready.Reason == ReasonTakenOut && ready.Message == MessageTakenOut
}

// restoredReady returns the Ready condition of a pod that MarkNotReady has marked,
// computed as in the kubelet's GeneratePodReadyCondition. It returns nil for other pods.
func restoredReady(pod *v1.Pod) *v1.PodCondition {
	ready := podcondition.Get(&pod.Status, v1.PodReady)
	if ready == nil || !isTakenOut(ready) {
		return nil
	}
	restored := &v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, ObservedGeneration: ready.ObservedGeneration}
	containers, gates := podcondition.Get(&pod.Status, v1.ContainersReady), unmetGates(pod)
	switch {
	case containers == nil:
		restored.Reason = reasonContainers
	case containers.Status != v1.ConditionTrue:
		restored.Reason, restored.Message = containers.Reason, containers.Message
	case gates != "":
		restored.Reason, restored.Message = reasonGates, gates
	default:
		restored.Status = v1.ConditionTrue
	}
	return restored
}

// unmetGates returns the kubelet's message about the readiness gates that keep a pod from
// being ready; "" means that there are none.
func unmetGates(pod *v1.Pod) string {
	var unmet []string
	for _, gate := range pod.Spec.ReadinessGates {
		condition := podcondition.Get(&pod.Status, gate.ConditionType)
		switch {
		case condition == nil:
			unmet = append(unmet, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case condition.Status != v1.ConditionTrue:
			unmet = append(unmet, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, condition.Status))
		}
	}
	return strings.Join(unmet, ", ")
}
