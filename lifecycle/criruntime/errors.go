package criruntime

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// known adds to an error of gRPC the error that callers compare with, if its code has one.
func known(err error) error {
	switch status.Code(err) {
	case codes.NotFound:
		return fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, err)
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case codes.Canceled:
		return fmt.Errorf("%w: %w", context.Canceled, err)
	default:
		return err
	}
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
