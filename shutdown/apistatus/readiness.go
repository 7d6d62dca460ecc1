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
	// reasonMarked and messageMarked identify the Ready condition that MarkNotReady sets: RestoreReadiness reverts
	// no other. Other conditions may have the same reason, but not the message.
	reasonMarked  = v1.PodReasonTerminationByKubelet
	messageMarked = "Pod is being terminated by its node."

	// reasonContainers and reasonGates are the kubelet's reasons for a pod that is not ready.
	reasonContainers = "ContainersNotReady"
	reasonGates      = "ReadinessGatesNotReady"
)

// MarkNotReady removes a pod from its services before the pod is stopped. It sets the Ready condition
// to False with the reason TerminationByKubelet and the message "Pod is being terminated by its
// node.", in one patch with the pod's UID as precondition. It sends nothing if the pod has ended or is
// not ready. An agent whose own loop writes the pod's status must keep that condition until the pod
// has ended.
//
// It makes one attempt and returns errors as [Reporter.FlushPod] does. It returns nil if the pod is
// gone.
func (r *Reporter) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	if !r.isMade() {
		return errNotMade
	}
	if pod != nil { // identify returns an error for nil
		ready := podcondition.Get(&pod.Status, v1.PodReady)
		isKnownNotReady := ready != nil && ready.Status != v1.ConditionTrue
		if isKnownNotReady || isTerminal(pod.Status.Phase) {
			return nil
		}
	}
	target, err := r.identify(ctx, pod)
	if err != nil || target == nil {
		return err
	}
	mark := &v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: reasonMarked, Message: messageMarked}
	return r.patchReady(ctx, target, newConditionPatch(&pod.Status, mark, podcondition.Generation(pod), metav1.Now()))
}

// RestoreReadiness undoes [Reporter.MarkNotReady]: it computes Ready from ContainersReady and the
// readiness gates, as the kubelet's GeneratePodReadyCondition does. It changes nothing if
// MarkNotReady has not set the condition, or if the pod has ended or is gone.
//
// It reads the pod first and uses the version it read as a precondition. If the pod has changed in
// between, the error is a conflict, and the caller may try again.
func (r *Reporter) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	if !r.isMade() {
		return errNotMade
	}
	if err := validatePod(pod); err != nil {
		return err
	}
	serverPod, err := r.read(ctx, pod)
	if serverPod == nil { // gone, or not read
		return err
	}
	restored := restoredReady(serverPod)
	if restored == nil || isTerminal(serverPod.Status.Phase) {
		return nil
	}
	target := &object{
		namespace: pod.Namespace, name: pod.Name, uid: serverPod.UID, resourceVersion: serverPod.ResourceVersion,
		isMirror: staticpod.IsMirror(serverPod),
	}
	return r.patchReady(ctx, target, newConditionPatch(&serverPod.Status, restored, podcondition.Generation(pod), metav1.Now()))
}

// patchReady writes only the Ready condition. A pod that is gone is no error.
func (r *Reporter) patchReady(ctx context.Context, target *object, ready conditionPatch) error {
	_, err := r.patch(ctx, target, statusPatch{Conditions: []conditionPatch{ready}})
	return err
}

// isReadinessMark reports whether MarkNotReady has set this Ready condition.
func isReadinessMark(ready *v1.PodCondition) bool {
	return ready.Status == v1.ConditionFalse && ready.Reason == reasonMarked && ready.Message == messageMarked
}

// restoredReady returns the Ready condition that replaces the one of MarkNotReady, or nil if MarkNotReady has not set
// the pod's condition. The pod is ready if ContainersReady is True and all readiness gates are met, as in the kubelet's
// GeneratePodReadyCondition.
func restoredReady(pod *v1.Pod) *v1.PodCondition {
	ready := podcondition.Get(&pod.Status, v1.PodReady)
	if ready == nil || !isReadinessMark(ready) {
		return nil
	}
	restored := &v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, ObservedGeneration: ready.ObservedGeneration}
	containersReady, unmet := podcondition.Get(&pod.Status, v1.ContainersReady), unmetGates(pod)
	switch {
	case containersReady == nil:
		restored.Reason = reasonContainers
	case containersReady.Status != v1.ConditionTrue:
		restored.Reason, restored.Message = containersReady.Reason, containersReady.Message
	case unmet != "":
		restored.Reason, restored.Message = reasonGates, unmet
	default:
		restored.Status = v1.ConditionTrue
	}
	return restored
}

// unmetGates returns the kubelet's message about unmet readiness gates, or "" if all are met.
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
