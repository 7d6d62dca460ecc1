package virtualkubelet

import (
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
)

// refusedError is an errdefs.ErrInvalidInput for a refused pod. Unlike the errors of package errdefs it wraps its
// reason, so that callers can test for lifecycle.ErrTerminating or ErrClosed.
type refusedError struct {
	pod    string // NAMESPACE/NAME
	reason error
}

func (e *refusedError) Error() string { return fmt.Sprintf("pod %s is refused: %v", e.pod, e.reason) }

// InvalidInput implements errdefs.ErrInvalidInput.
func (*refusedError) InvalidInput() bool { return true }

func (e *refusedError) Unwrap() error { return e.reason }

// newRefusedError tells virtual-kubelet that the provider does not take this pod, and why.
func newRefusedError(pod *v1.Pod, reason error) error {
	return &refusedError{pod: nameOf(pod).String(), reason: reason}
}

// newNotFoundError returns the error from which virtual-kubelet concludes that the provider does not have the pod.
func newNotFoundError(namespace, name string) error {
	return errdefs.NotFoundf("pod %s/%s not found", namespace, name)
}
