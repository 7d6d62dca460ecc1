package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrContainerNotFound is wrapped by the StopContainer error of a [Runtime] that has no such container.
// The terminator takes this error as a success.
var ErrContainerNotFound = errors.New("container not found")

// ErrKilled may be wrapped by the error of a [Runtime] or [PodStopper] that had to kill the container.
// The terminator takes this error as a success: the container has ended. Its outcome is
// [OutcomeGraceExceeded], or [OutcomeForced] if a call had the timeout 0.
var ErrKilled = errors.New("the runtime has killed the container")

// Container is one run of a container. Two runs with the same ID differ in Began.
type Container struct {
	// Name is the name of the container in the pod's spec. If the spec has no such container, it
	// is stopped without a hook and without waiting for others, and its result has an error.
	Name string
	// ID is the agent's own ID of the container. It must not be empty, nor have the prefix
	// ("containerd://") that IDs in a pod's status have. The [Runtime], the [CommandRunner] and
	// the [ExitWatcher] get only the ID. It must therefore be unique on the node at any one time.
	ID string
	// Began is a time that does not change during the run, such as CRI's CreatedAt. If it is zero,
	// the terminator can tell two runs with the same ID apart only if a list between them lacks
	// the ID.
	Began time.Time
	// PreStopDone says that a previous agent has run the preStop hook for this run. The hook then
	// does not run again.
	PreStopDone bool
}

// Runtime is the agent's container runtime. This package imports no gRPC: an adapter for CRI has
// to turn the gRPC code NotFound into [ErrContainerNotFound].
type Runtime interface {
	// Running lists the pod's containers that have not ended, including those that may have been
	// started. The list must show a moment after the call began, so a runtime that polls waits for
	// its next poll. After an error the terminator calls Running again; an error never means that
	// nothing runs. An error that wraps [errors.ErrUnsupported] says that the runtime cannot list.
	// Running must return when ctx ends, [TerminatorOptions].StopTimeoutSlack after the call.
	Running(ctx context.Context, pod *v1.Pod) ([]Container, error)
	// StopContainer follows CRI's RuntimeService. It sends the stop signal, waits up to
	// timeoutSeconds for the container to end, and then kills it; a timeout of 0 kills at once. It
	// returns nil when the container has ended, even if that was before the call. The error wraps
	// [ErrContainerNotFound] if there is no such container, and may wrap [ErrKilled] if
	// StopContainer had to kill. After any other error the terminator calls again, with the rest
	// of the grace period. StopContainer must return when ctx ends.
	//
	// The terminator may make a second, concurrent call for the same container, with a shorter
	// timeout. The runtime must then kill the container at the end of the shorter timeout. It may
	// send the stop signal again or not.
	StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error
}

// RuntimeFunc is a [Runtime] that cannot list. The function is its StopContainer, and must not be nil.
// Every [Request] must then have Containers.
type RuntimeFunc func(ctx context.Context, containerID string, timeoutSeconds int64) error

// Running returns an error that wraps [errors.ErrUnsupported].
func (f RuntimeFunc) Running(context.Context, *v1.Pod) ([]Container, error) {
	return nil, fmt.Errorf("a RuntimeFunc cannot list what runs, so that Containers must be set: %w", errors.ErrUnsupported)
}

// StopContainer calls the function.
func (f RuntimeFunc) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	return f(ctx, containerID, timeoutSeconds)
}

// PodStopper replaces a [Runtime] for pods whose containers stop as a unit, such as a virtual machine or
// a remote job.
type PodStopper interface {
	// Running is Runtime.Running.
	Running(ctx context.Context, pod *v1.Pod) ([]Container, error)
	// StopPod does for all containers of the pod what Runtime.StopContainer does for one.
	StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error
}

// HandlerRunner runs one lifecycle hook and waits for it. It is the kubelet's HandlerRunner, but the
// container's ID is an opaque string. ctx ends when the hook must end. Its Deadline method tells when
// that is for a preStop hook. Run returns a message for a log, which is empty if the hook succeeds.
type HandlerRunner interface {
	Run(ctx context.Context, containerID string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error)
}

// CommandRunner runs the command of an exec hook in a container, and returns its stdout and stderr
// together. A timeout of 0 or less means that only ctx limits the command. ctx ends at the same time as
// the timeout, so a runner that heeds ctx may ignore the timeout. Only the first 64 KiB of the output
// are used.
type CommandRunner interface {
	RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error)
}

// ExitWatcher tells when a container has exited, which ends its sleep hook. The terminator does not take
// an exit as proof that the container has ended; only [Runtime].Running is. Exited returns a channel that
// is closed when the container exits, or closed already if it has exited before. A nil channel means
// that the exit of this container cannot be watched.
type ExitWatcher interface {
	Exited(containerID string) <-chan struct{}
}

// EventRecorder records an event about an object. The EventRecorder of client-go implements it.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}
