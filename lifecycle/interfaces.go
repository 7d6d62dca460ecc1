package lifecycle

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrContainerNotFound is wrapped by the error of a [Runtime] that does not have the
// container. For a stop that is a success.
var ErrContainerNotFound = errors.New("container not found")

// ErrKilled may be wrapped by the error of a [Runtime] or [PodStopper] that had to kill: the
// container has ended, and its outcome is [GraceExceeded], or [Forced] if a call had the
// timeout 0.
var ErrKilled = errors.New("the runtime has killed the container")

// ErrUnit is wrapped by the error of [Pod.KillContainer] for a terminator with a
// [PodStopper], whose containers stop only together.
var ErrUnit = errors.New("the containers of the pod stop as a unit")

// HandlerRunner runs one lifecycle hook. It is like the kubelet's HandlerRunner, but the
// container's ID is an opaque string. ctx has the deadline of the hook. The message that
// Run returns is for a log; it is empty if the hook succeeds.
type HandlerRunner interface {
	Run(ctx context.Context, containerID string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error)
}

// Runtime stops containers. StopContainer is like that of the RuntimeService of
// k8s.io/cri-api. This package imports no gRPC: an adapter has to turn the gRPC code
// NotFound into [ErrContainerNotFound].
//
// StopContainer sends the stop signal, waits for timeoutSeconds, and then kills the
// container; with a timeout of 0 it kills at once. It returns nil when the container has
// ended, also if that was before the call, and an error that wraps ErrContainerNotFound if
// there is no such container. It may say that it had to kill, with an error that wraps
// [ErrKilled]. It returns at the latest when ctx ends.
//
// A second, concurrent call for the same container may be made, with a shorter timeout: the
// runtime must then kill the container at the end of the shorter timeout. It may send the
// stop signal again or not. If a call fails with any other error, it is repeated with what is
// left of the grace period.
type Runtime interface {
	StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error
}

// PodStopper stops all containers of a pod as a unit, for pods that are one virtual machine
// or one remote job. StopPod is like [Runtime.StopContainer]: it returns nil when all have
// ended, an error that wraps [ErrContainerNotFound] if there is no such pod, at the latest
// when ctx ends, and is called again if it fails. A second, concurrent call may be made, with
// a shorter timeout.
type PodStopper interface {
	StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error
}

// RuntimeFunc is a function that implements [Runtime].
type RuntimeFunc func(ctx context.Context, containerID string, timeoutSeconds int64) error

// StopContainer calls the function.
func (f RuntimeFunc) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	return f(ctx, containerID, timeoutSeconds)
}

// CommandRunner runs the command of an exec hook in a container and returns its stdout and
// stderr together. A timeout of 0 or less means that only ctx limits the command. Since ctx
// ends at the same time as the timeout, a runner that heeds ctx may ignore the timeout. The
// first 64 KiB of the output are used, so a runner need not keep more.
type CommandRunner interface {
	RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error)
}

// ExitWatcher tells when a container has exited. Exited returns a channel that is closed
// when the container has exited, or is closed already if it had exited before. A nil channel
// means that the exit of this container cannot be watched, or that its ID is not known.
// While the channel is open the container counts as running, whatever the [Runtime] says.
type ExitWatcher interface {
	Exited(containerID string) <-chan struct{}
}

// EventRecorder records an event about an object. The recorder of client-go implements it.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}
