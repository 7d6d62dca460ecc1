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
	// errNoUID is the error for a pod that cannot be distinguished from a newer one with
	// the same name.
	errNoUID = errors.New("the pod has no UID")
	// errNoName is the error for a pod that has no URL at the API server.
	errNoName = errors.New("the pod needs a namespace and a name")
)

// FlushPod writes the final status of a pod with one strategic merge patch. The patch is
// made from pod alone, without reading the pod first, and the pod's UID is its
// precondition. Fields that pod does not set keep the API server's values. For a static
// pod the status goes to its mirror pod, which has another UID and therefore is read
// first.
//
// In a terminal phase (Failed, Succeeded) the conditions say that the pod is not ready,
// and containers with an unknown exit code get the terminated state 137,
// ContainerStatusUnknown, as in the kubelet's TerminatePod. In other phases the pod stays
// with the agent's own loop: only conditions that are not True are written, and container
// statuses if one of them has ended.
//
// A pod with a deletion timestamp is then deleted with a grace period of 0 and the UID as
// precondition, unless a container of it may still run. Mirror pods are left to the
// agent.
//
// FlushPod returns nil if the API server has acknowledged all of this, or if the pod is
// gone or replaced by another pod with the same name. It makes one attempt and returns
// its error: an [apierrors.APIStatus] if the API server answered. Every error may be
// transient and worth another attempt, except those for a nil pod and for a pod without a
// UID.
func (r *Reporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	target, err := r.identify(ctx, pod)
	if err != nil || target == nil {
		return err
	}
	if patch := finalStatus(pod, metav1.Now()); !patch.empty() {
		gone, err := r.patch(ctx, target, patch)
		if gone || err != nil {
			return err
		}
	}
	if pod.DeletionTimestamp == nil || target.static || mayRun(pod) {
		return nil
	}
	return r.remove(ctx, target)
}

// object identifies a pod on the API server.
type object struct {
	namespace, name string
	uid             types.UID
	resourceVersion string // the version that was read; "": not read, so no precondition
	static          bool   // it is the mirror pod of a static pod
}

func (o *object) String() string { return o.namespace + "/" + o.name }

// identify returns the object that represents the pod on the API server, or nil without
// an error if it is gone.
func (r *Reporter) identify(ctx context.Context, pod *v1.Pod) (*object, error) {
	if err := validatePod(pod); err != nil {
		return nil, err
	}
	if !staticpod.IsOrMirrors(pod) {
		return &object{namespace: pod.Namespace, name: pod.Name, uid: pod.UID}, nil
	}
	server, err := r.read(ctx, pod)
	if server == nil {
		return nil, err
	}
	return &object{namespace: pod.Namespace, name: pod.Name, uid: server.UID, static: true}, nil
}

// validatePod returns an error for a pod that cannot be identified.
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

// read returns the pod on the API server. It returns nil without an error if the pod is
// gone or another one has its name.
func (r *Reporter) read(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	server, err := r.api.getPod(ctx, pod.Namespace, pod.Name)
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if !represents(server, pod) {
		return nil, nil
	}
	return server, nil
}

// represents reports whether the pod on the API server is the node's pod, and not a newer
// pod with the same name. A static pod is represented by its mirror pod, which has
// another UID; its annotation has the hash of the static pod.
func represents(server, pod *v1.Pod) bool {
	if server.UID == pod.UID {
		return true
	}
	hash, hashed := pod.Annotations[staticpod.HashAnnotation]
	mirrored := server.Annotations[v1.MirrorPodAnnotationKey]
	return staticpod.Is(pod) && staticpod.IsMirror(server) && (!hashed || hash == mirrored)
}

// patch patches the status of a pod. gone is true if the pod no longer exists.
func (r *Reporter) patch(ctx context.Context, target *object, status statusPatch) (gone bool, err error) {
	body, err := json.Marshal(podPatch{
		Metadata: metadataPatch{UID: target.uid, ResourceVersion: target.resourceVersion}, Status: status,
	})
	if err == nil {
		err = r.api.patchStatus(ctx, target.namespace, target.name, body)
	}
	if err == nil || r.gone(ctx, target, err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("failed to patch the status of pod %v: %w", target, err)
}

// remove deletes a pod whose containers have ended, as the kubelet's status manager does.
func (r *Reporter) remove(ctx context.Context, target *object) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(target.uid))
	err := r.api.deletePod(ctx, target.namespace, target.name, options)
	if err == nil || r.gone(ctx, target, err) {
		return nil
	}
	return fmt.Errorf("failed to delete pod %v: %w", target, err)
}

// gone reports whether an error means that the pod no longer exists. For another pod of
// the same name the API server answers 422 to a patch, naming metadata.uid, and 409 to a
// delete. A 409 may also be another conflict, so the pod is then read.
func (r *Reporter) gone(ctx context.Context, target *object, err error) bool {
	switch {
	case notFound(err):
		return true
	case target.static:
		return false // the static pod may have a new mirror pod, which the next attempt reads
	case apierrors.IsInvalid(err):
		return hasCause(err, "metadata.uid")
	case apierrors.IsConflict(err):
		server, err := r.api.getPod(ctx, target.namespace, target.name)
		return notFound(err) || err == nil && server.UID != target.uid
	default:
		return false
	}
}

// notFound reports whether the API server itself answered that the object does not exist.
// A 404 without a Status object may come from a proxy.
func notFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// hasCause reports whether an error names field as a cause.
func hasCause(err error, field string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}
