package apistatus

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// PublishNode writes what a state means for the node into its conditions, and
// nothing else. A state without a shutdown is taken back only where it was said:
// Ready only if it still has our reason and message, so that neither the agent's
// own heartbeat nor the node controller's Unknown is overruled. What is known
// already is not written again.
//
// It tries until a moment before ctx ends (a twentieth of the time that is left, 50 ms
// at most), so that who waits no longer than ctx hears why it failed. A refusal (400,
// 401, 403, 422) and a node that does not exist end it at once: what is to become of
// them is for the caller to say.
func (r *Reporter) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	ctx, cancel := inTime(ctx)
	defer cancel()
	return retry(ctx, func(ctx context.Context) error { return r.publishOnce(ctx, state) })
}

// publishOnce reads the node and writes the conditions that are to change.
func (r *Reporter) publishOnce(ctx context.Context, state shutdown.NodeState) error {
	name := r.opts.NodeName
	node, err := r.api.getNode(ctx, name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %q does not exist: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("failed to read node %q: %w", name, err)
	}
	after := node.DeepCopy()
	if !changeConditions(&after.Status, state, NodeConditions(state, r.opts.Ready(), time.Now())) {
		return nil
	}
	patch, err := nodePatch(node, after)
	if err == nil {
		err = r.api.patchNodeStatus(ctx, name, patch)
	}
	if err != nil {
		return fmt.Errorf("failed to patch the status of node %q: %w", name, err)
	}
	return nil
}

// nodePatch changes the conditions of a node as it was read: what was decided by
// them holds only as long as nobody else writes them.
func nodePatch(before, after *v1.Node) ([]byte, error) {
	return twoWayPatch(
		v1.Node{Status: v1.NodeStatus{Conditions: before.Status.Conditions}},
		v1.Node{
			ObjectMeta: metav1.ObjectMeta{UID: before.UID, ResourceVersion: before.ResourceVersion},
			Status:     v1.NodeStatus{Conditions: after.Status.Conditions},
		},
	)
}

// changeConditions writes those conditions that have something new to say, and
// tells whether there are any.
func changeConditions(status *v1.NodeStatus, state shutdown.NodeState, conditions []v1.NodeCondition) bool {
	changed := false
	for _, condition := range conditions {
		old := nodeCondition(status, condition.Type)
		switch {
		case !state.ShuttingDown && !toUndo(old):
			continue
		case old == nil:
			status.Conditions = append(status.Conditions, condition)
		case saysTheSame(old, &condition):
			continue
		default:
			if old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			*old = condition
		}
		changed = true
	}
	return changed
}

// toUndo tells whether a condition says that the node shuts down.
func toUndo(old *v1.NodeCondition) bool {
	if old == nil {
		return false
	}
	if old.Type == v1.NodeReady {
		said := notReady()
		return saysTheSame(old, &said)
	}
	return old.Status != v1.ConditionFalse
}

// saysTheSame compares all but the times.
func saysTheSame(a, b *v1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// nodeCondition is the condition of a type, to be read or written; nil: none.
func nodeCondition(status *v1.NodeStatus, of v1.NodeConditionType) *v1.NodeCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == of {
			return &status.Conditions[i]
		}
	}
	return nil
}
