package apiserver

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mirrorKeeper keeps the mirror of one pod for [Client.KeepMirror].
type mirrorKeeper struct {
	*Client
	pod        *v1.Pod
	observed   Observed
	lastLogged string // the text of the last error that was logged as one
}

// syncMirror creates or replaces the mirror if it must, and writes its status. It asks
// whether the pod is ending after each read and before each write, because the shutdown
// may take over the mirror at any time.
func (k *mirrorKeeper) syncMirror(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if k.observed.Ending() {
		return nil
	}
	wanted, err := k.observed.Status(ctx)
	if err != nil {
		return err
	}
	mirror, err := k.currentMirror(ctx, wanted)
	if err != nil || mirror == nil || wanted == nil || k.observed.Ending() {
		return err
	}
	return k.writeStatus(ctx, mirror, wanted)
}

// currentMirror returns the mirror, which it creates if there is none or a stale one. It
// returns nil if the pod is ending and there is none to keep.
func (k *mirrorKeeper) currentMirror(ctx context.Context, wanted *v1.PodStatus) (*v1.Pod, error) {
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

// writeStatus writes the status unless the mirror has it already. The update carries the
// resource version that was read: if the shutdown has written since, it fails with a
// conflict.
func (k *mirrorKeeper) writeStatus(ctx context.Context, mirror *v1.Pod, wanted *v1.PodStatus) error {
	status := mergeStatus(mirror, wanted, metav1.Now())
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

// phaseOf returns the phase of a status, and Pending for nil.
func phaseOf(status *v1.PodStatus) v1.PodPhase {
	if status == nil {
		return v1.PodPending
	}
	return status.Phase
}
