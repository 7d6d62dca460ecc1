package cri

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

// containerError returns an error that names the operation and the container, and wraps
// err and its sentinel.
func containerError(operation, containerID string, err error) error {
	if known := sentinel(err); known != nil {
		return fmt.Errorf("failed to %s container %q: %w: %w", operation, containerID, known, err)
	}
	return fmt.Errorf("failed to %s container %q: %w", operation, containerID, err)
}

// isNotFound reports whether the runtime does not know the object of a call. Removals treat
// that as success.
func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// withCause adds the cause of ctx to err if ctx has ended: an error of gRPC says only
// that the call was cancelled.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
