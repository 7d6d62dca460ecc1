package cri

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sentinel gives the error that a caller can branch on for the gRPC code of err,
// nil if there is none.
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

// containerError says which operation failed on which container. It wraps err, and
// the sentinel for its code.
func containerError(operation, containerID string, err error) error {
	if known := sentinel(err); known != nil {
		return fmt.Errorf("failed to %s container %q: %w: %w", operation, containerID, known, err)
	}
	return fmt.Errorf("failed to %s container %q: %w", operation, containerID, err)
}

// gone tells whether the runtime does not know what was asked for, which is success
// for whoever wants to be rid of it.
func gone(err error) bool { return status.Code(err) == codes.NotFound }

// withCause adds why ctx has ended, if it has: gRPC knows only that it was cancelled.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
