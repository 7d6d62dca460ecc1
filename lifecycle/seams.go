package lifecycle

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrContainerNotFound is wrapped by a [Runtime] whose container is gone. For a
// stop that is success.
var ErrContainerNotFound = errors.New("container not found")

// HandlerRunner runs one lifecycle hook. It has the shape of the kubelet's
// HandlerRunner, with the container's ID an opaque string. The message is empty
// on success; ctx carries the deadline of the hook.
type HandlerRunner interface {
	Run(ctx context.Context, containerID string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error)
}

// Runtime stops containers. It has the shape of the RuntimeService of
// k8s.io/cri-api, whose gRPC code NotFound an adapter turns into
// [ErrContainerNotFound]; this package knows no gRPC.
//
// A timeout of n seconds means: send the stop signal, wait, kill after n seconds; 0
// means: kill at once. The call returns when the container has ended, successfully
// also if it had ended before, and at the latest when ctx ends. A container that is
// gone is reported with an error that wraps ErrContainerNotFound. A second call may
// come, in parallel, for a container whose first has not returned; it has a smaller
// timeout, and the container is to be killed when that is over. A call that fails in any
// other way is made again, with what is left of the grace.
type Runtime interface {
	StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error
}

// RuntimeFunc makes a [Runtime] of a function.
type RuntimeFunc func(ctx context.Context, containerID string, timeoutSeconds int64) error

// StopContainer calls the function.
func (f RuntimeFunc) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	return f(ctx, containerID, timeoutSeconds)
}

// CommandRunner runs the command of an exec hook in a container and returns its
// stdout and stderr together. A timeout of zero or less means none beyond ctx. The
// first 64 KiB of the output are used; a runner should read no more than it gives.
type CommandRunner interface {
	RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error)
}

// ExitWatcher tells when a container has exited. The channel is closed once it
// has, or at once if it had before the call.
type ExitWatcher interface {
	Exited(containerID string) <-chan struct{}
}

// EventRecorder records an event on an object; client-go's recorder is one.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}
