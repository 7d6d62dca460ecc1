// Package podruntime is the seam between the agent and what runs its pods.
//
// # Concurrency properties
//
// All methods of a [Runtime] may be called concurrently, for one pod and for
// many. [Runtime.StartPod] and [Runtime.StopPod] of one pod are not called at
// the same time.
//
// # Failure modes
//
// A start that fails leaves behind what it made; [Runtime.StopPod] removes it.
//
// # Testing
//
// The embedded runtime of the agent is a real one for tests: it keeps scripted
// containers in the process.
package podruntime

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// Runtime starts and stops the containers of pods.
type Runtime interface {
	lifecycle.Runtime       // StopContainer
	lifecycle.CommandRunner // RunInContainer
	lifecycle.ExitWatcher   // Exited

	// StartPod makes the sandbox of a pod, runs its init containers in order and
	// starts its sidecars and main containers. It returns those that run, in the
	// order in which they were started. A pod that runs already (the same UID) is
	// adopted: its containers are returned and nothing is started.
	StartPod(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error)
	// RestartContainer starts a container of a running pod again that has exited, and gives
	// the ID of the new one. What is left of the old one is removed.
	RestartContainer(ctx context.Context, pod *v1.Pod, exited lifecycle.Container) (id string, err error)
	// StopPod removes what StartPod made (the sandbox), after its containers
	// have stopped. A pod that is not known is no error.
	StopPod(ctx context.Context, pod *v1.Pod) error
	// Close lets go of the connection and leaves the pods running.
	Close() error
}

// HashAnnotation tells one manifest of a pod from another: the kubelet's
// ConfigHashAnnotationKey.
const HashAnnotation = "kubernetes.io/config.hash"

// ErrChanged says that a pod was started from another manifest than its present one.
var ErrChanged = errors.New("the manifest of the pod has changed since it was started")

// Adopter is a [Runtime] that can find what an earlier life of the agent has left
// running, without starting anything: an agent that comes back in the middle of a
// shutdown must stop these pods and start none.
type Adopter interface {
	// Adopt returns the containers of a pod that run, in the order in which they
	// were started; found is false if the runtime does not know the pod. With an error
	// that wraps [ErrChanged] they are those of another manifest of the pod.
	Adopt(ctx context.Context, pod *v1.Pod) (containers []lifecycle.Container, found bool, err error)
}

// StatusReader is a [Runtime] that can tell what has become of a container.
type StatusReader interface {
	// ContainerStatus gives what is known of a container: its State, with exit code,
	// reason and times where it has ended, and its ContainerID, with the name of the
	// runtime before it. What is not known is left empty. An unknown container is an
	// error that wraps lifecycle.ErrContainerNotFound.
	ContainerStatus(ctx context.Context, containerID string) (v1.ContainerStatus, error)
}
