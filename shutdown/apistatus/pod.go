package apistatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

var (
	errNoPod = errors.New("a pod is required")
	// errNoUID refuses a pod that cannot be told from another one of its name.
	errNoUID = errors.New("the pod has no UID")
)

// FlushPod writes the final status of a pod: one strategic merge patch, made of what
// the pod says, with its UID as a precondition, so that nothing has to be read first.
// What the pod does not say stays as the API server has it. A static pod is an
// exception: the status goes to its mirror pod, which is read first, since its UID is
// another one.
//
// In a terminal phase (Failed, Succeeded) the pod is not ready any more, and its
// containers whose exit code nobody has told are terminated with 137 and
// ContainerStatusUnknown, as the kubelet's TerminatePod has them. In any other phase,
// which is left to the agent's own loop, conditions are written that say no, and the
// containers' statuses if one has ended.
//
// A pod with a deletion timestamp is then deleted (grace period 0, UID precondition),
// unless a container of it may still run. Mirror pods are left to the agent.
//
// Nil: all of that is acknowledged, or the pod is gone, be it that another one has its
// name. An error is that of the one attempt that was made, an [apierrors.APIStatus]
// where the API server answered; none means that another attempt is of no use, but
// for a pod without a UID.
func (r *Reporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	of, err := r.identify(ctx, pod)
	if err != nil || of == nil {
		return err
	}
	if patch := finalStatus(pod, metav1.Now()); !patch.empty() {
		gone, err := r.patch(ctx, of, patch)
		if gone || err != nil {
			return err
		}
	}
	if pod.DeletionTimestamp == nil || of.static || mayRun(pod) {
		return nil
	}
	return r.remove(ctx, of)
}

// object is a pod as the API server knows it.
type object struct {
	namespace, name string
	uid             types.UID
	resourceVersion string // as it was read; "": it was not, and any version will do
	static          bool   // a mirror pod
}

func (o *object) String() string { return o.namespace + "/" + o.name }

// identify gives the object that stands for a pod. Nil without an error: it is gone.
func (r *Reporter) identify(ctx context.Context, pod *v1.Pod) (*object, error) {
	if err := check(pod); err != nil {
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

// check refuses a pod that cannot be found.
func check(pod *v1.Pod) error {
	if pod == nil {
		return errNoPod
	}
	if pod.UID == "" && !staticpod.Is(pod) {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, errNoUID)
	}
	return nil
}

// read gives a pod as the API server has it. Nil without an error: it is gone, or
// another pod has its name.
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

// patch sends a change of a pod's status. gone: there is no such pod any more.
func (r *Reporter) patch(ctx context.Context, of *object, status statusPatch) (gone bool, err error) {
	body, err := json.Marshal(podPatch{
		Metadata: metadataPatch{UID: of.uid, ResourceVersion: of.resourceVersion}, Status: status,
	})
	if err == nil {
		err = r.api.patchPodStatus(ctx, of.namespace, of.name, body)
	}
	if err == nil || r.gone(ctx, of, err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("failed to patch the status of pod %v: %w", of, err)
}

// remove deletes a pod whose containers have ended, as the kubelet's status manager
// does at the end of a termination.
func (r *Reporter) remove(ctx context.Context, of *object) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(of.uid))
	err := r.api.deletePod(ctx, of.namespace, of.name, options)
	if err == nil || r.gone(ctx, of, err) {
		return nil
	}
	return fmt.Errorf("failed to delete pod %v: %w", of, err)
}

// gone tells whether an error means that there is no such pod any more. The API server
// answers 422 to a patch with another pod's UID and names the field, but 409 to a
// delete, as to any other conflict: then the pod is looked at.
func (r *Reporter) gone(ctx context.Context, of *object, err error) bool {
	switch {
	case notFound(err):
		return true
	case of.static:
		return false // another mirror pod may stand for the same static pod: the next attempt finds it
	case apierrors.IsInvalid(err):
		return hasCause(err, "metadata.uid")
	case apierrors.IsConflict(err):
		server, err := r.api.getPod(ctx, of.namespace, of.name)
		return notFound(err) || err == nil && server.UID != of.uid
	default:
		return false
	}
}

// notFound tells whether the API server says that there is no such object. A 404 that
// is not in its words may be that of something in between.
func notFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// hasCause tells whether a field is named as a cause of an error.
func hasCause(err error, field string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field {
			return true
		}
	}
	return false
}
