package apiserver

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// errNoMirror reports that the API server has an ordinary pod with the name of a mirror.
var errNoMirror = errors.New("the pod of this name on the API server is no mirror pod, and is left alone")

// mirrorOf returns the mirror of a static pod, owned by its node (the kubelet's
// CreateMirrorPod).
func mirrorOf(pod *v1.Pod, node *v1.Node) *v1.Pod {
	mirror := pod.DeepCopy()
	mirror.UID, mirror.ResourceVersion, mirror.Status = "", "", v1.PodStatus{}
	metav1.SetMetaDataAnnotation(&mirror.ObjectMeta, v1.MirrorPodAnnotationKey, pod.Annotations[hashAnnotation])
	mirror.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.SchemeGroupVersion.String(),
		Kind:       "Node",
		Name:       node.Name,
		UID:        node.UID,
		Controller: ptr.To(true),
	}}
	return mirror
}

// isMirror reports whether a pod of the API server is a mirror.
func isMirror(server *v1.Pod) bool {
	_, mirror := server.Annotations[v1.MirrorPodAnnotationKey]
	return mirror
}

// isStale reports whether a mirror has to be replaced: it shows another manifest, is being
// deleted, or has a terminal phase while the pod has none.
func isStale(mirror, pod *v1.Pod, phase v1.PodPhase) bool {
	return mirror.Annotations[v1.MirrorPodAnnotationKey] != pod.Annotations[hashAnnotation] ||
		mirror.DeletionTimestamp != nil ||
		terminal(mirror.Status.Phase) && !terminal(phase)
}

// createMirror creates the mirror of a pod. The Node has to exist, because it becomes the
// owner.
func (c *Client) createMirror(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	node, err := c.client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("failed to read node %q, which is to own the mirror pod: %w", c.node, err)
	}
	mirror, err := c.client.CoreV1().Pods(pod.Namespace).Create(ctx, mirrorOf(pod, node), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("failed to create the mirror pod: %w", err)
	}
	return mirror, nil
}

// deleteMirror deletes a mirror without grace. The UID in the request spares a new pod of
// the same name.
func (c *Client) deleteMirror(ctx context.Context, mirror *v1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(mirror.UID))
	err := c.client.CoreV1().Pods(mirror.Namespace).Delete(ctx, mirror.Name, *options)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("failed to delete the mirror pod: %w", err)
	}
	return nil
}

// RemoveMirror deletes the mirror of a static pod whose manifest is gone. If there is
// none, or the pod of this name is not a mirror, it does nothing.
func (c *Client) RemoveMirror(ctx context.Context, pod *v1.Pod) error {
	mirror, err := c.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("failed to read the mirror pod: %w", err)
	case !isMirror(mirror):
		return nil
	}
	return c.deleteMirror(ctx, mirror)
}
