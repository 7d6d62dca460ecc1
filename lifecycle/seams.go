package lifecycle

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/features"
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

const (
	// PodLifecycleSleepAction lets a hook sleep. Off: a sleep hook returns at
	// once and says nothing, as in a kubelet without the gate (KEP-3960).
	PodLifecycleSleepAction = features.PodLifecycleSleepAction
	// ContainerStopSignals lets a container choose its stop signal (KEP-4960). Nothing
	// here asks it: whoever creates containers does, see package stopsignal.
	ContainerStopSignals = features.ContainerStopSignals
)

// FeatureGate answers whether a feature is on, with Enabled(featuregate.Feature) bool; a
// fork's DefaultFeatureGate is one. Where one is taken, nil means the default of every gate.
type FeatureGate = features.Gate

// AddFeatureGates adds the gates of this package to gate, and that of
// PodLifecycleSleepActionAllowZero (KEP-4818), which validation asks for, except those
// that it has already. It must be called before the gate's AddFlag, which closes it.
func AddFeatureGates(gate featuregate.MutableFeatureGate) error {
	return features.Add(gate, PodLifecycleSleepAction, features.PodLifecycleSleepActionAllowZero, ContainerStopSignals)
}

// Container names a container that runs.
type Container struct {
	// Name is the container's in the pod's spec. One that the spec does not have is
	// stopped without a hook and out of order, and its result has an error.
	Name string
	// ID is what the [Runtime], the [HandlerRunner] and the [ExitWatcher] know the
	// container by. It is opaque here, and must be the pod's only one. A container
	// without an ID is not asked for: its result is [RuntimeStuck], with an error that
	// wraps [ErrUnknownContainers].
	ID string
	// PreStopDone says that the container's preStop hook has run already, in an
	// earlier life of the agent; it is not run again.
	PreStopDone bool
}

// Request says how a pod is to be terminated. The zero value means: with the
// pod's own grace period, all containers that run in its status.
type Request struct {
	// GracePeriodSeconds overrides the grace period of the pod's spec, in seconds;
	// nil means the pod's own. A value below 1 means 1. It does not lengthen the
	// grace of a pod that was deleted ([graceperiod.ForPod]).
	GracePeriodSeconds *int64
	// Containers are those that run; nil means [ContainersOf] the pod, and an empty
	// list that none does but for those that [Terminator.Start] has started.
	Containers []Container
	// Message is that of the Killing event; "" means "Stopping container NAME". The
	// ID of the container in it is replaced by its name, as in the kubelet.
	Message string
}

// ContainerRequest says how a single container is to be ended. The zero value means:
// with the grace period of its pod.
type ContainerRequest struct {
	// Reason decides the grace: that of a failed probe may have its own
	// ([graceperiod.ForContainer]). "" is [graceperiod.ReasonUnknown].
	Reason graceperiod.KillReason
	// GracePeriodSeconds replaces that grace, in seconds; 0 or less leaves no time for
	// the hook. nil means that of the reason.
	GracePeriodSeconds *int64
	// Message is that of the Killing event, as in [Request]; "" means the kubelet's for
	// the reason.
	Message string
}
