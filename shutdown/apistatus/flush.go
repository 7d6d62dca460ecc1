package apistatus

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FlushPod writes a pod's final status in one strategic merge patch. It does not read the pod first;
// the pod's UID is the precondition. Fields that pod does not set keep the API server's values. The
// status of a static pod goes to its mirror pod, which is read first because its UID differs and only
// its annotations identify the static pod.
//
// In a terminal phase (Failed, Succeeded) the pod becomes not ready, and a container with an unknown
// exit code is written as terminated with 137, ContainerStatusUnknown, as in the kubelet's
// TerminatePod. In other phases the agent's own loop owns the status: FlushPod writes only conditions
// that are not True, and container statuses once a container has ended.
//
// A pod with a deletion timestamp is then deleted with a grace period of 0 s and the UID as
// precondition, unless one of its containers may still run. Mirror pods are not deleted.
//
// FlushPod returns nil once the API server has acknowledged all this, or if the pod is gone or
// replaced by another pod with its name. It makes one attempt. The error wraps an
// [apierrors.APIStatus] if the API server answered. Every error may be transient, except those for a
// nil pod and for a pod without a namespace, a name or, unless it is static, a UID.
func (r *Reporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	if !r.isMade() {
		return errNotMade
	}
	target, err := r.identify(ctx, pod)
	if err != nil || target == nil {
		return err
	}
	if patch := finalStatus(pod, metav1.Now()); !patch.empty() {
		isGone, err := r.patch(ctx, target, patch)
		if isGone || err != nil {
			return err
		}
	}
	if pod.DeletionTimestamp == nil || target.isMirror || mayRun(pod) {
		return nil // nothing to delete, or not yet
	}
	return r.remove(ctx, target)
}

// remove deletes the pod from the API server at once, as the kubelet's status manager does when the pod has ended. A
// pod that is gone already is no error.
func (r *Reporter) remove(ctx context.Context, target *object) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(target.uid))
	err := r.api.deletePod(ctx, target.namespace, target.name, options)
	if err == nil || r.isGone(ctx, target, err) {
		return nil
	}
	return fmt.Errorf("failed to delete pod %v: %w", target, err)
}
