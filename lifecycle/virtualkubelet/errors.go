package virtualkubelet

import (
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
)

// RefusedError is why a pod is not taken. It is of virtual-kubelet's kind
// errdefs.ErrInvalidInput and wraps its reason, which the errors of errdefs do not:
// [lifecycle.ErrTerminating], or [lifecycle.AgentStopping] after [Provider.Close].
type RefusedError struct {
	// Pod is NAMESPACE/NAME.
	Pod string
	// Reason is never nil.
	Reason error
}

// Error names the pod and gives the reason.
func (e *RefusedError) Error() string { return fmt.Sprintf("pod %s is refused: %v", e.Pod, e.Reason) }

// InvalidInput makes the error one of virtual-kubelet's kinds.
func (*RefusedError) InvalidInput() bool { return true }

// Unwrap gives the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

// refused is the error for a pod that is not taken.
func refused(pod *v1.Pod, reason error) error {
	return &RefusedError{Pod: nameOf(pod).String(), Reason: reason}
}

// notFound is the error for a pod that is not known.
func notFound(namespace, name string) error {
	return errdefs.NotFoundf("pod %s/%s is not known", namespace, name)
}
