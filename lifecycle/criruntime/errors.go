package criruntime

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sentinel returns the exported error for the gRPC code of err, or nil.
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

// withSentinel wraps err with its sentinel.
func withSentinel(err error) error {
	if is := sentinel(err); is != nil && !errors.Is(err, is) {
		return fmt.Errorf("%w: %w", is, err)
	}
	return err
}

// containerError returns an error that names the operation and the container.
func containerError(operation, containerID string, err error) error {
	return fmt.Errorf("failed to %s container %q: %w", operation, containerID, withSentinel(err))
}

// isNotFound reports whether the runtime does not know the object.
func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// isUnanswered reports whether the runtime has not answered.
func isUnanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	default:
		return false
	}
}
