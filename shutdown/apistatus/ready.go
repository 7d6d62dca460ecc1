package apistatus

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
)

const (
	// ReasonTakenOut is the reason of the Ready condition of a pod that MarkReady has
	// taken out of its services, told apart from any probe's by [MessageTakenOut].
	ReasonTakenOut = v1.PodReasonTerminationByKubelet
	// MessageTakenOut is the message of the Ready condition of such a pod.
	MessageTakenOut = "Pod is being terminated by its node."

	// reasonContainers and reasonGates are the kubelet's, of a pod that is not ready.
	reasonContainers = "ContainersNotReady"
	reasonGates      = "ReadinessGatesNotReady"
)

// MarkReady takes pods out of their services, or puts back those that it has taken
// out: their Ready condition is False with [ReasonTakenOut] and [MessageTakenOut],
// and then again what their containers and readiness gates say. A pod that is not
// ready for another reason, has ended or is gone is left alone. An agent whose own
// loop writes the status of these pods has to keep that condition meanwhile.
//
// It tries, returns and fails as [Reporter.FlushPods] does.
func (r *Reporter) MarkReady(ctx context.Context, pods []*v1.Pod, ready bool) error {
	change := takeOut
	if ready {
		change = putBack
	}
	return r.each(ctx, pods, func(ctx context.Context, pod *v1.Pod) error {
		server, err := r.read(ctx, pod)
		if server == nil || terminal(server.Status.Phase) {
			return err
		}
		status := server.Status.DeepCopy()
		takeCondition(status, change(server), pod.Generation, metav1.Now())
		return r.write(ctx, server, status)
	})
}

// takenOut tells whether a Ready condition is as MarkReady has left it.
func takenOut(ready *v1.PodCondition) bool {
	return ready.Status == v1.ConditionFalse && ready.Reason == ReasonTakenOut && ready.Message == MessageTakenOut
}

// takeOut is the Ready condition of a pod that gets no more requests; nil: it gets
// none already.
func takeOut(pod *v1.Pod) *v1.PodCondition {
	if ready := podcondition.Get(&pod.Status, v1.PodReady); ready == nil || ready.Status != v1.ConditionTrue {
		return nil
	}
	return &v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: ReasonTakenOut, Message: MessageTakenOut}
}

// putBack is the Ready condition of a pod that was taken out, as the kubelet's
// GeneratePodReadyCondition makes it; nil: nobody took it out.
func putBack(pod *v1.Pod) *v1.PodCondition {
	if ready := podcondition.Get(&pod.Status, v1.PodReady); ready == nil || !takenOut(ready) {
		return nil
	}
	back := &v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse}
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
