package criruntime

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sentinel returns the error that callers compare with, for the gRPC code of err, or nil
// if the code has none.
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

// known wraps err with its sentinel.
func known(err error) error {
	if is := sentinel(err); is != nil && !errors.Is(err, is) {
		return fmt.Errorf("%w: %w", is, err)
	}
	return err
}

// containerError returns an error that names the operation and the container.
func containerError(operation, containerID string, err error) error {
	return fmt.Errorf("failed to %s container %q: %w", operation, containerID, known(err))
}

// isNotFound reports whether the runtime does not know the object of a call.
func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// isAway reports whether the runtime has not answered.
func isAway(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	default:
		return false
	}
}
