package apiserver

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keeper keeps one mirror.
type keeper struct {
	*Client
	pod      *v1.Pod
	observed Observed
	told     string // the last error that was logged
}

// sync makes the mirror what it should be. That it is the keeper's business is asked
// after each thing read and before each thing written.
func (k *keeper) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if k.observed.Ending() {
		return nil
	}
	wanted, err := k.observed.Status(ctx)
	if err != nil {
		return err
	}
	mirror, err := k.fresh(ctx, wanted)
	if err != nil || mirror == nil || wanted == nil || k.observed.Ending() {
		return err
	}
	return k.write(ctx, mirror, wanted)
}

// fresh gives a mirror of the pod that is not stale; nil: none any more, the pod is
// ending.
func (k *keeper) fresh(ctx context.Context, wanted *v1.PodStatus) (*v1.Pod, error) {
	mirror, err := k.client.CoreV1().Pods(k.pod.Namespace).Get(ctx, k.pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("failed to read the mirror pod: %w", err)
	case !isMirror(mirror):
		return nil, errNoMirror
	case !isStale(mirror, k.pod, phaseOf(wanted)):
		return mirror, nil
	case k.observed.Ending():
		return nil, nil
	default:
		if err := k.deleteMirror(ctx, mirror); err != nil {
			return nil, err
		}
	}
	if k.observed.Ending() {
		return nil, nil
	}
	return k.createMirror(ctx, k.pod)
}

// write says how the pod is, unless that is known. The version of what was read is a
// condition: what the shutdown has written since is not overwritten.
func (k *keeper) write(ctx context.Context, mirror *v1.Pod, wanted *v1.PodStatus) error {
	status := merged(mirror, wanted, metav1.Now())
	if equality.Semantic.DeepEqual(&mirror.Status, status) {
		return nil
	}
	changed := mirror.DeepCopy()
	changed.Status = *status
	if _, err := k.client.CoreV1().Pods(changed.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("failed to write the status of the mirror pod: %w", err)
	}
	return nil
}

// phaseOf is the phase of a pod; one that is not known has not begun.
func phaseOf(status *v1.PodStatus) v1.PodPhase {
	if status == nil {
		return v1.PodPending
	}
	return status.Phase
}
