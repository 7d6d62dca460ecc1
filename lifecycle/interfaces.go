package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrContainerNotFound is wrapped by the StopContainer error of a [Runtime] that does not know the
// container. The terminator treats it as success.
var ErrContainerNotFound = errors.New("container not found")

// Container is one run of a container. Began distinguishes runs with the same ID.
type Container struct {
	// Name is the container's name in the pod's spec. A container that the spec lacks is stopped
	// without a hook and without waiting for others, and its result has an error.
	Name string
	// ID is the agent's ID of the container, without the prefix ("containerd://") that IDs in a pod's
	// status have. It must not be empty, and must be the same in each list during the run. It must be
	// unique on the node at any time, because the [Runtime], the [CommandRunner] and the [ExitWatcher] get
	// no other identification.
	ID string
	// Began is a time that stays the same during the run, such as CRI's CreatedAt. If it is zero, the
	// terminator recognizes a new run with the same ID only after a list without that ID. An argument must
	// have exactly the Began that is listed, or none; the startedAt of a pod's status is not exact.
	Began time.Time
	// PreStopDone says that a previous agent ran the preStop hook for this run. The hook does not run
	// again.
	PreStopDone bool
}

// Runtime is the agent's container runtime. An adapter for CRI must convert the gRPC code NotFound to
// [ErrContainerNotFound]; this package does not import gRPC.
type Runtime interface {
	// Running lists the pod's containers that have not ended, including those that may have been
	// started. The list must be taken after the call began: a runtime that polls waits for its next
	// poll. After an error the terminator calls Running again; an error never means that nothing is
	// running. An error that wraps [errors.ErrUnsupported] means that the runtime cannot list. Running
	// must return when ctx ends, which is [TerminatorOptions].StopTimeoutSlack after the call.
	Running(ctx context.Context, pod *v1.Pod) ([]Container, error)
	// StopContainer follows CRI's RuntimeService. It sends the stop signal, waits up to timeoutSeconds
	// for the container to end, and then kills it; timeout 0 kills at once. It returns nil when the
	// container has ended, also if it had ended before the call. The error wraps [ErrContainerNotFound]
	// if the container is unknown. After any other error the terminator calls again, with the remaining
	// grace period. StopContainer must return when ctx ends.
	//
	// The terminator may make a concurrent second call for the same container with a shorter timeout.
	// The runtime must then kill the container after the shorter timeout. It need not send the stop
	// signal again.
	StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error
}

// RuntimeFunc is a [Runtime] that cannot list. The function is its StopContainer, and must not be nil.
// Every [Request] must set Containers.
type RuntimeFunc func(ctx context.Context, containerID string, timeoutSeconds int64) error

// Running returns an error that wraps [errors.ErrUnsupported].
func (f RuntimeFunc) Running(context.Context, *v1.Pod) ([]Container, error) {
	return nil, fmt.Errorf("a RuntimeFunc cannot list containers, set Request.Containers: %w", errors.ErrUnsupported)
}

// StopContainer calls the function.
func (f RuntimeFunc) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	return f(ctx, containerID, timeoutSeconds)
}

// PodStopper replaces a [Runtime] for pods whose containers stop as a unit, such as virtual machines or
// remote jobs.
type PodStopper interface {
	// Running lists the pod's containers under the rules of [Runtime].Running.
	Running(ctx context.Context, pod *v1.Pod) ([]Container, error)
	// StopPod stops all containers of the pod under the rules of [Runtime].StopContainer.
	StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error
}

// HandlerRunner runs a lifecycle hook and waits for it. It is the kubelet's HandlerRunner, except that the
// container ID is a string. The hook must end when ctx ends. For a preStop hook, ctx.Deadline returns the end
// of the grace period. Run returns a message for the log, "" if the hook succeeds.
type HandlerRunner interface {
	Run(ctx context.Context, containerID string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error)
}

// CommandRunner runs the command of an exec hook in a container, and returns its combined stdout and
// stderr, of which only the first 64 KiB are used. timeout is the time until ctx's deadline; 0 or less
// means that ctx has none. A runner that honors ctx may ignore it.
type CommandRunner interface {
	RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error)
}

// ExitWatcher reports when a container exits, so that its sleep hook ends. To the terminator this does not
// prove that the container has ended; only [Runtime].Running does. Exited returns a channel that is closed
// when the container exits or has already exited; nil: the container cannot be watched. A channel that is
// closed too early costs a running container its sleep hook ([CauseContainerExited]).
type ExitWatcher interface {
	Exited(containerID string) <-chan struct{}
}

// EventRecorder records an event about an object; the EventRecorder of client-go implements it.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}
