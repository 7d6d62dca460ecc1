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

// PublishNode writes the node conditions for state in one request. It writes nothing if they are up
// to date.
//
// After a shutdown it resets only what a shutdown has written. It sets Ready only if that condition
// still has the reason KubeletNotReady and the shutdown's message, so it overwrites neither the
// agent's own heartbeat nor the node controller's Unknown.
//
// The feature [shutdown.DaemonSetGracefulNodeShutdown] adds DrainInProgress. If that is True with a
// reason other than NodeShutdown, another program drains the node, and PublishNode never changes it.
//
// PublishNode reads the node and uses the version it read as a precondition. It retries after 20 to
// 750 ms, or after the delay that the server asks for, until shortly before ctx ends (5 % of the
// remaining time, at most 50 ms), so that the caller still receives the error. Without a deadline it
// retries until ctx is cancelled. It does not retry if the API server refuses the request, with a status
// 4xx other than 408, 409 and 429, such as the 404 of a node that does not exist. The first attempt has
// 1 s, but at most a quarter of the remaining time; each further attempt has twice as long as the one
// before. [Options.RequestTimeout] bounds each of its requests.
func (r *Reporter) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	if !r.isMade() {
		return errNotMade
	}
	ctx, cancel := withHeadroom(ctx)
	defer cancel()
	return retry(ctx, func(ctx context.Context) error { return r.publishOnce(ctx, state) })
}

// publishOnce is one attempt of PublishNode: it reads the node, and patches its conditions if any must change.
func (r *Reporter) publishOnce(ctx context.Context, state shutdown.NodeState) error {
	name := r.node
	node, err := r.api.getNode(ctx, name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %q does not exist: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("failed to read node %q: %w", name, err)
	}
	changed := node.DeepCopy()
	if hasChanged := changeConditions(&changed.Status, state, r.conditions(state, time.Now())); !hasChanged {
		return nil
	}
	patch, err := nodePatch(node, changed)
	if err == nil {
		const noNamespace = "" // a node has none
		err = r.api.patchStatus(ctx, noNamespace, name, patch)
	}
	if err != nil {
		return fmt.Errorf("failed to patch the status of node %q: %w", name, err)
	}
	return nil
}

// conditions returns the node conditions for a state. DrainInProgress is reset even without the
// feature, because a previous agent with the feature may have set it.
func (r *Reporter) conditions(state shutdown.NodeState, now time.Time) []v1.NodeCondition {
	conditions := NodeConditions(state, r.ready(), now)
	if r.publishesDrain || !state.ShuttingDown {
		conditions = append(conditions, withTimes(now, []v1.NodeCondition{drainCondition(state)})...)
	}
	return conditions
}

// nodePatch returns the patch of a node's conditions. Its precondition is the version that was read,
// because the decision to write depends on the conditions of that version.
func nodePatch(before, after *v1.Node) ([]byte, error) {
	return twoWayPatch(
		v1.Node{Status: v1.NodeStatus{Conditions: before.Status.Conditions}},
		v1.Node{
			ObjectMeta: metav1.ObjectMeta{UID: before.UID, ResourceVersion: before.ResourceVersion},
			Status:     v1.NodeStatus{Conditions: after.Status.Conditions},
		},
	)
}

// twoWayPatch returns the strategic merge patch that changes before into after. A UID or resourceVersion
// that is set only in after becomes a precondition.
func twoWayPatch[T any](before, after T) ([]byte, error) {
	old, errOld := json.Marshal(before)
	changed, errChanged := json.Marshal(after)
	if err := errors.Join(errOld, errChanged); err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, changed, before)
}

// changeConditions sets the conditions in status and reports whether any has changed. A condition that keeps its Status
// keeps its LastTransitionTime too. After a shutdown changeConditions resets only conditions that a shutdown has set
// (isShutdownCondition). It never touches the DrainInProgress of another program.
func changeConditions(status *v1.NodeStatus, state shutdown.NodeState, conditions []v1.NodeCondition) (hasChanged bool) {
	for _, condition := range conditions {
		old := nodeCondition(status, condition.Type)
		hasNothingToReset := !state.ShuttingDown && !isShutdownCondition(old)
		isUpToDate := old != nil && equalExceptTimes(old, &condition)
		if hasNothingToReset || isUpToDate || isForeignDrain(old) {
			continue
		}
		hasChanged = true
		if old == nil {
			status.Conditions = append(status.Conditions, condition)
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		*old = condition
	}
	return hasChanged
}

// isShutdownCondition reports whether the node's condition says that a shutdown is in progress, so that it must be reset
// after the shutdown. old is nil if the node has no such condition. What says so differs by the type:
//
//   - Ready: exactly the condition that this package sets in a shutdown. The agent or the node controller sets any other.
//   - DrainInProgress: True.
//   - GracefulNodeShutdownInProgress: anything but False.
func isShutdownCondition(old *v1.NodeCondition) bool {
	if old == nil {
		return false
	}
	switch old.Type {
	case v1.NodeReady:
		shutdownReady := notReady()
		return equalExceptTimes(old, &shutdownReady)
	case drainInProgress:
		return old.Status == v1.ConditionTrue // changeConditions skips a foreign drain
	default:
		return old.Status != v1.ConditionFalse
	}
}

// isForeignDrain reports whether old is a DrainInProgress condition that another program has set to True: its reason is
// not the reasonNodeShutdown that this package sets.
func isForeignDrain(old *v1.NodeCondition) bool {
	isDrain := old != nil && old.Type == drainInProgress && old.Status == v1.ConditionTrue
	return isDrain && old.Reason != reasonNodeShutdown
}

// equalExceptTimes reports whether two conditions of one type differ at most in their times.
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
