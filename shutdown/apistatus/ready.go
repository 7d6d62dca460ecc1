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
	// ReasonTakenOut is the reason of the Ready condition of a pod that MarkNotReady has
	// taken out of its services, told apart from any probe's by [MessageTakenOut].
	ReasonTakenOut = v1.PodReasonTerminationByKubelet
	// MessageTakenOut is the message of the Ready condition of such a pod.
	MessageTakenOut = "Pod is being terminated by its node."

	// reasonContainers and reasonGates are the kubelet's, of a pod that is not ready.
	reasonContainers = "ContainersNotReady"
	reasonGates      = "ReadinessGatesNotReady"
)

// MarkNotReady takes a pod out of its services before it is stopped: its Ready
// condition becomes False with [ReasonTakenOut] and [MessageTakenOut], in one patch
// with the pod's UID as a precondition. Nothing is sent for a pod that says that it is
// not ready or has ended. An agent whose own loop writes the status of these pods has
// to keep that condition meanwhile.
//
// It makes one attempt and gives errors as [Reporter.FlushPod] does; a pod that is
// gone is none.
func (r *Reporter) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	if pod != nil {
		ready := podcondition.Get(&pod.Status, v1.PodReady)
		if terminal(pod.Status.Phase) || ready != nil && ready.Status != v1.ConditionTrue {
			return nil
		}
	}
	of, err := r.identify(ctx, pod)
	if err != nil || of == nil {
		return err
	}
	out := &v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: ReasonTakenOut, Message: MessageTakenOut}
	return r.patchReady(ctx, of, changed(&pod.Status, out, generationOf(pod), metav1.Now()))
}

// RestoreReadiness puts a pod back that MarkNotReady has taken out: its Ready
// condition becomes what its containers and readiness gates say. A pod that is not
// ready for another reason, has ended or is gone is left alone. The pod is read first,
// and the patch holds for what was read: when somebody else has written meanwhile the
// error is a conflict, and another attempt in place.
func (r *Reporter) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	if err := check(pod); err != nil {
		return err
	}
	server, err := r.read(ctx, pod)
	if server == nil {
		return err
	}
	back := putBack(server)
	if back == nil || terminal(server.Status.Phase) {
		return nil
	}
	of := &object{
		namespace: pod.Namespace, name: pod.Name, uid: server.UID, resourceVersion: server.ResourceVersion,
		static: staticpod.IsMirror(server),
	}
	return r.patchReady(ctx, of, changed(&server.Status, back, generationOf(pod), metav1.Now()))
}

// patchReady writes a Ready condition.
func (r *Reporter) patchReady(ctx context.Context, of *object, ready conditionPatch) error {
	_, err := r.patch(ctx, of, statusPatch{Conditions: []conditionPatch{ready}})
	return err
}

// takenOut tells whether a Ready condition is as MarkNotReady has left it.
func takenOut(ready *v1.PodCondition) bool {
	return ready.Status == v1.ConditionFalse && ready.Reason == ReasonTakenOut && ready.Message == MessageTakenOut
}

// putBack is the Ready condition of a pod that was taken out, as the kubelet's
// GeneratePodReadyCondition makes it; nil: nobody took it out.
func putBack(pod *v1.Pod) *v1.PodCondition {
	ready := podcondition.Get(&pod.Status, v1.PodReady)
	if ready == nil || !takenOut(ready) {
		return nil
	}
	back := &v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, ObservedGeneration: ready.ObservedGeneration}
	containers, gates := podcondition.Get(&pod.Status, v1.ContainersReady), closedGates(pod)
	switch {
	case containers == nil:
		back.Reason = reasonContainers
	case containers.Status != v1.ConditionTrue:
		back.Reason, back.Message = containers.Reason, containers.Message
	case gates != "":
		back.Reason, back.Message = reasonGates, gates
	default:
		back.Status = v1.ConditionTrue
	}
	return back
}

// closedGates says in the kubelet's words which readiness gates keep a pod from
// being ready; "": none.
func closedGates(pod *v1.Pod) string {
	var closed []string
	for _, gate := range pod.Spec.ReadinessGates {
		condition := podcondition.Get(&pod.Status, gate.ConditionType)
		switch {
		case condition == nil:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case condition.Status != v1.ConditionTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, condition.Status))
		}
	}
	return strings.Join(closed, ", ")
}
