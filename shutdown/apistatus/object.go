package apistatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

var (
	errNoPod = errors.New("a pod is required")
	// errNoUID refuses a pod without a UID, because a write for it could hit a newer pod with the same name.
	errNoUID = errors.New("the pod has no UID")
	// errNoName is the error for a pod that has no URL at the API server.
	errNoName = errors.New("the pod needs a namespace and a name")
)

// object identifies a pod on the API server.
type object struct {
	namespace, name string
	uid             types.UID
	resourceVersion string // a precondition; "": none
	isMirror        bool   // the object is the mirror pod of a static pod
}

// String returns NAMESPACE/NAME.
func (o *object) String() string { return o.namespace + "/" + o.name }

// identify returns the object that holds the pod's status on the API server: for a static pod that is its mirror
// pod, which identify reads. If the mirror pod is gone, it returns nil and no error.
func (r *Reporter) identify(ctx context.Context, pod *v1.Pod) (*object, error) {
	if err := validatePod(pod); err != nil {
		return nil, err
	}
	if !staticpod.IsOrMirrors(pod) {
		return &object{namespace: pod.Namespace, name: pod.Name, uid: pod.UID}, nil
	}
	mirror, err := r.read(ctx, pod)
	if mirror == nil { // gone, or not read
		return nil, err
	}
	return &object{namespace: pod.Namespace, name: pod.Name, uid: mirror.UID, isMirror: true}, nil
}

// validatePod returns an error for a pod that no request can identify. A static pod needs no UID, because the status
// goes to its mirror pod, which has another one.
func validatePod(pod *v1.Pod) error {
	if pod == nil {
		return errNoPod
	}
	if pod.Namespace == "" || pod.Name == "" {
		return fmt.Errorf("pod %q of namespace %q: %w", pod.Name, pod.Namespace, errNoName)
	}
	if pod.UID == "" && !staticpod.Is(pod) {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, errNoUID)
	}
	return nil
}

// read returns the pod as the API server has it. If it is gone, or another pod has its name, read returns nil and no
// error.
func (r *Reporter) read(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	serverPod, err := r.api.getPod(ctx, pod.Namespace, pod.Name)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if !represents(serverPod, pod) {
		return nil, nil
	}
	return serverPod, nil
}

// represents reports whether serverPod, a pod from the API server, is the node's pod, and not another pod with the same
// name. A static pod is represented by its mirror pod. That has a UID of its own; it is recognized by an annotation with
// the static pod's hash. If the static pod has no hash, any mirror pod of its name is taken for its own.
func represents(serverPod, pod *v1.Pod) bool {
	if serverPod.UID == pod.UID {
		return true
	}
	if !staticpod.Is(pod) || !staticpod.IsMirror(serverPod) {
		return false
	}
	hash, hasHash := pod.Annotations[staticpod.HashAnnotation]
	return !hasHash || hash == serverPod.Annotations[v1.MirrorPodAnnotationKey]
}

// patch patches the status of a pod. A pod that no longer exists is no error; isGone is then true.
func (r *Reporter) patch(ctx context.Context, target *object, status statusPatch) (isGone bool, err error) {
	body, err := json.Marshal(podPatch{
		Metadata: metadataPatch{UID: target.uid, ResourceVersion: target.resourceVersion}, Status: status,
	})
	if err == nil {
		err = r.api.patchStatus(ctx, target.namespace, target.name, body)
	}
	switch {
	case err == nil:
		return false, nil
	case r.isGone(ctx, target, err):
		return true, nil
	}
	return false, fmt.Errorf("failed to patch the status of pod %v: %w", target, err)
}

// isGone reports whether err, from a write, means that the pod no longer exists. If another pod has its name, the API
// server answers a patch with 422 and names metadata.uid, and a delete with 409. A 409 may also be another
// conflict, so isGone then reads the pod.
func (r *Reporter) isGone(ctx context.Context, target *object, err error) bool {
	switch {
	case isNotFound(err):
		return true
	case target.isMirror:
		return false // there may be a new mirror pod, which the next attempt reads
	case apierrors.IsInvalid(err):
		return hasCause(err, "metadata.uid")
	case apierrors.IsConflict(err):
		serverPod, err := r.api.getPod(ctx, target.namespace, target.name)
		isReplaced := err == nil && serverPod.UID != target.uid
		return isNotFound(err) || isReplaced
	default:
		return false
	}
}

// isNotFound reports whether the API server itself has answered 404. A 404 without a Status object may come from a
// proxy in between, and says nothing about the pod.
func isNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// hasCause reports whether the API server's answer names the field as a cause of the error.
func hasCause(err error, field string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}
