package apistatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kubegrace/kubegrace/shutdown"
)

// PublishNode writes the conditions that the state gives the node, and nothing else.
//
// After a shutdown it only undoes what a shutdown has written: it sets Ready only if that
// condition still has [ReasonNotReady] and its message, so it overrules neither the agent's
// own heartbeat nor the node controller's Unknown. It writes nothing if the conditions are
// up to date.
//
// It tries again until shortly before ctx ends (a twentieth of the remaining time, at
// most 50 ms), so that a caller who waits for ctx still receives the error. It returns at
// once if the API server refuses (400, 401, 403, 422) or the node does not exist. Without
// a deadline it tries until ctx is cancelled.
func (r *Reporter) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	ctx, cancel := withHeadroom(ctx)
	defer cancel()
	return retry(ctx, func(ctx context.Context) error { return r.publishOnce(ctx, state) })
}

// publishOnce reads the node and patches the conditions that have to change.
func (r *Reporter) publishOnce(ctx context.Context, state shutdown.NodeState) error {
	name := r.node
	node, err := r.api.getNode(ctx, name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %q does not exist: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("failed to read node %q: %w", name, err)
	}
	after := node.DeepCopy()
	if !changeConditions(&after.Status, state, NodeConditions(state, r.ready(), time.Now())) {
		return nil
	}
	patch, err := nodePatch(node, after)
	if err == nil {
		err = r.api.patchStatus(ctx, "", name, patch)
	}
	if err != nil {
		return fmt.Errorf("failed to patch the status of node %q: %w", name, err)
	}
	return nil
}

// nodePatch returns the patch of a node's conditions. Its precondition is the version of
// the node that was read, because the decision depends on the conditions of that version.
func nodePatch(before, after *v1.Node) ([]byte, error) {
	return twoWayPatch(
		v1.Node{Status: v1.NodeStatus{Conditions: before.Status.Conditions}},
		v1.Node{
			ObjectMeta: metav1.ObjectMeta{UID: before.UID, ResourceVersion: before.ResourceVersion},
			Status:     v1.NodeStatus{Conditions: after.Status.Conditions},
		},
	)
}

// changeConditions updates the conditions that have to change and reports whether there
// are any.
func changeConditions(status *v1.NodeStatus, state shutdown.NodeState, conditions []v1.NodeCondition) bool {
	changed := false
	for _, condition := range conditions {
		old := nodeCondition(status, condition.Type)
		switch {
		case !state.ShuttingDown && !saysShutdown(old):
			continue
		case old == nil:
			status.Conditions = append(status.Conditions, condition)
		case equalExceptTimes(old, &condition):
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

// saysShutdown reports whether a condition says that the node shuts down.
func saysShutdown(old *v1.NodeCondition) bool {
	shutdownReady := notReady()
	return old != nil && (old.Type == v1.NodeReady && equalExceptTimes(old, &shutdownReady) ||
		old.Type != v1.NodeReady && old.Status != v1.ConditionFalse)
}

// equalExceptTimes compares two conditions without their times.
func equalExceptTimes(a, b *v1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// nodeCondition returns a pointer to the condition of a type, or nil.
func nodeCondition(status *v1.NodeStatus, conditionType v1.NodeConditionType) *v1.NodeCondition {
	i := slices.IndexFunc(status.Conditions, func(c v1.NodeCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

// twoWayPatch returns the strategic merge patch from before to after. A UID or
// resourceVersion that only after has becomes a precondition.
func twoWayPatch[T any](before, after T) ([]byte, error) {
	old, errOld := json.Marshal(before)
	changed, errChanged := json.Marshal(after)
	if err := errors.Join(errOld, errChanged); err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, changed, before)
}
