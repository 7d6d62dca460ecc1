package virtualkubelet

import (
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
)

// refusedError is why a pod is not taken. It is of virtual-kubelet's kind
// errdefs.ErrInvalidInput and wraps its reason, which the errors of errdefs do not.
type refusedError struct {
	pod    string // NAMESPACE/NAME
	reason error
}

// Error names the pod and gives the reason.
func (e *refusedError) Error() string { return fmt.Sprintf("pod %s is refused: %v", e.pod, e.reason) }

// InvalidInput makes the error one of virtual-kubelet's kinds.
func (*refusedError) InvalidInput() bool { return true }

// Unwrap gives the reason.
func (e *refusedError) Unwrap() error { return e.reason }

// refused is the error for a pod that is not taken.
func refused(pod *v1.Pod, reason error) error {
	return &refusedError{pod: nameOf(pod).String(), reason: reason}
}

// notFound is the error for a pod that is not known.
func notFound(namespace, name string) error {
	return errdefs.NotFoundf("pod %s/%s is not known", namespace, name)
}
