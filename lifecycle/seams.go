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

// ErrContainerNotFound is wrapped by the error of a [Runtime] that does not have the
// container. For a stop that is a success.
var ErrContainerNotFound = errors.New("container not found")

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
// there is no such container. It returns at the latest when ctx ends.
//
// A second, concurrent call for the same container may be made, with a shorter timeout: the
// runtime must then kill the container at the end of the shorter timeout. If a call fails
// with any other error, it is repeated with what is left of the grace period.
type Runtime interface {
	StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error
}

// RuntimeFunc is a function that implements [Runtime].
type RuntimeFunc func(ctx context.Context, containerID string, timeoutSeconds int64) error

// StopContainer calls the function.
func (f RuntimeFunc) StopContainer(ctx context.Context, containerID string, timeoutSeconds int64) error {
	return f(ctx, containerID, timeoutSeconds)
}

// CommandRunner runs the command of an exec hook in a container and returns its stdout and
// stderr together. A timeout of 0 or less means that only ctx limits the command. The first
// 64 KiB of the output are used, so a runner need not keep more.
type CommandRunner interface {
	RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error)
}

// ExitWatcher tells when a container has exited. Exited returns a channel that is closed
// when the container has exited, or is closed already if it had exited before.
type ExitWatcher interface {
	Exited(containerID string) <-chan struct{}
}

// EventRecorder records an event about an object. The recorder of client-go implements it.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

const (
	// PodLifecycleSleepAction allows sleep hooks (KEP-3960). If it is off, a sleep hook
	// returns at once without an error, as in a kubelet without the feature.
	PodLifecycleSleepAction = features.PodLifecycleSleepAction
	// ContainerStopSignals allows a container to choose its stop signal (KEP-4960).
	// This package does not read it. It is for the code that creates containers, see
	// package stopsignal.
	ContainerStopSignals = features.ContainerStopSignals
)

// FeatureGate tells whether a feature is on, with a method Enabled(featuregate.Feature)
// bool. Every featuregate.FeatureGate implements it, and so does the DefaultFeatureGate of a
// kubelet fork. In options, nil means the default of every feature.
type FeatureGate = features.Gate

// AddFeatureGates adds the features of this package to gate, and
// PodLifecycleSleepActionAllowZero (KEP-4818), which package validation uses. Features that
// gate has already stay as they are. It must be called before the gate's AddFlag, which
// closes the gate.
func AddFeatureGates(gate featuregate.MutableFeatureGate) error {
	return features.Add(gate, PodLifecycleSleepAction, features.PodLifecycleSleepActionAllowZero, ContainerStopSignals)
}

// Container is a running container.
type Container struct {
	// Name is the name of the container in the pod's spec. A container that the spec
	// does not have is stopped without a hook and without regard to the order, and its
	// result has an error.
	Name string
	// ID is the ID of the container for the [Runtime], the [HandlerRunner] and the
	// [ExitWatcher]. It is opaque here, and must be unique in the pod. A container
	// without an ID cannot be stopped: its outcome is [RuntimeStuck], and its error
	// wraps [ErrUnknownContainers].
	ID string
	// PreStopDone says that the container's preStop hook has run already, before the
	// agent restarted; it does not run again.
	PreStopDone bool
}

// Request says how to terminate a pod. The zero value terminates it with its own grace
// period, and stops all containers that run by its status.
type Request struct {
	// GracePeriodSeconds replaces the grace period of the pod's spec, in seconds; nil:
	// that of the spec. A value below 1 means 1. It cannot lengthen the grace period of
	// a pod that was deleted ([graceperiod.ForPod]).
	GracePeriodSeconds *int64
	// Containers are the containers that run; nil: those of [ContainersOf]. An empty
	// list that is not nil means that only those run that [Terminator.Start] has
	// started.
	Containers []Container
	// Message is the message of the Killing events; "": "Stopping container NAME". The
	// ID of the container in it is replaced by the name, as in the kubelet.
	Message string
}

// ContainerRequest says how to stop a single container. The zero value stops it with the
// grace period of its pod.
type ContainerRequest struct {
	// Reason decides the grace period: a probe that failed may have its own
	// ([graceperiod.ForContainer]). "" means [graceperiod.ReasonUnknown].
	Reason graceperiod.KillReason
	// GracePeriodSeconds replaces that grace period, in seconds; nil: that of the
	// reason. 0 or less leaves no time for the hook.
	GracePeriodSeconds *int64
	// Message is the message of the Killing event, as in [Request]; "": the kubelet's
	// for the reason.
	Message string
}
