package criruntime

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// withSentinel makes err match the error of package lifecycle or context that means the same as its gRPC code, if there
// is one, so that callers can use errors.Is and need not import gRPC.
func withSentinel(err error) error {
	var sentinel error
	switch status.Code(err) {
	case codes.NotFound:
		sentinel = lifecycle.ErrContainerNotFound
	case codes.DeadlineExceeded:
		sentinel = context.DeadlineExceeded
	case codes.Canceled:
		sentinel = context.Canceled
	default:
		return err
	}
	if errors.Is(err, sentinel) {
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

// containerError returns an error that names the operation and the container.
func containerError(operation, containerID string, err error) error {
	return fmt.Errorf("failed to %s container %q: %w", operation, containerID, withSentinel(err))
}

// isNotFound reports whether err is the runtime's answer that it does not know the container or sandbox.
func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// isUnanswered reports whether err means that the runtime has not answered, so that nothing is known.
func isUnanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	default:
		return false
	}
}
