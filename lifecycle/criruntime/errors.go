package criruntime

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sentinel returns the error of package lifecycle or context that means the same as the gRPC code of err, for
// callers that use errors.Is; nil if there is none.
func sentinel(err error) error {
	switch status.Code(err) {
	case codes.NotFound:
		return lifecycle.ErrContainerNotFound
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Canceled:
		return context.Canceled
	default:
		return nil
	}
}

// withSentinel makes err match its sentinel in errors.Is, so that callers need not import gRPC.
func withSentinel(err error) error {
	target := sentinel(err)
	if target == nil || errors.Is(err, target) {
		return err
	}
	return fmt.Errorf("%w: %w", target, err)
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
