package virtualkubelet

import (
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
)

// refusedError is the error for a pod that is refused. It is an errdefs.ErrInvalidInput
// and, unlike the errors of package errdefs, wraps its reason.
type refusedError struct {
	pod    string // NAMESPACE/NAME
	reason error
}

// Error returns the name of the pod and the reason.
func (e *refusedError) Error() string { return fmt.Sprintf("pod %s is refused: %v", e.pod, e.reason) }

// InvalidInput implements errdefs.ErrInvalidInput.
func (*refusedError) InvalidInput() bool { return true }

// Unwrap returns the reason.
func (e *refusedError) Unwrap() error { return e.reason }

// newRefusedError returns the error for a pod that is refused.
func newRefusedError(pod *v1.Pod, reason error) error {
	return &refusedError{pod: nameOf(pod).String(), reason: reason}
}

// newNotFoundError returns the error for an unknown pod.
func newNotFoundError(namespace, name string) error {
	return errdefs.NotFoundf("pod %s/%s is not known", namespace, name)
}
