package apistatus

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// errNoUID refuses a pod that cannot be told from another one of its name.
var errNoUID = errors.New("the pod has no UID")

// finish writes the final status of a pod and removes it, if that is wanted.
func (r *Reporter) finish(ctx context.Context, pod *v1.Pod) error {
	server, err := r.read(ctx, pod)
	if server == nil {
		return err
	}
	if err := r.write(ctx, server, finalStatus(server, pod, metav1.Now())); err != nil {
		return err
	}
	if pod.DeletionTimestamp == nil || staticpod.IsMirror(server) {
		return nil
	}
	return r.remove(ctx, server)
}

// read gives the pod as the API server has it. Nil without an error: it is gone,
// or another pod has its name, and there is nothing more to say.
func (r *Reporter) read(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	if pod.UID == "" && !staticpod.Is(pod) {
		return nil, errNoUID
	}
	server, err := r.opts.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read the pod: %w", err)
	}
	if !represents(server, pod) {
		return nil, nil
	}
	return server, nil
}

// write sends what is to change in the status of a pod as it was read; nothing, if
// nothing is.
func (r *Reporter) write(ctx context.Context, server *v1.Pod, status *v1.PodStatus) error {
	if equality.Semantic.DeepEqual(&server.Status, status) {
		return nil
	}
	patch, err := podPatch(server, status)
	if err == nil {
		pods := r.opts.Client.CoreV1().Pods(server.Namespace)
		_, err = pods.Patch(ctx, server.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("failed to patch the pod's status: %w", err)
	}
	return nil
}

// podPatch is the kubelet's patch of a status, with the UID as its precondition.
// The version is another one: that a pod has not ended by itself, for instance, is
// true of what was read only.
func podPatch(server *v1.Pod, status *v1.PodStatus) ([]byte, error) {
	return twoWayPatch(
		v1.Pod{Status: server.Status},
		v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: server.UID, ResourceVersion: server.ResourceVersion}, Status: *status},
	)
}

// remove deletes a pod whose containers have ended, as the kubelet's status manager
// does at the end of a termination.
func (r *Reporter) remove(ctx context.Context, server *v1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(server.UID))
	err := r.opts.Client.CoreV1().Pods(server.Namespace).Delete(ctx, server.Name, *options)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("failed to delete the pod: %w", err)
	}
	return nil
}
