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

	// StartPod creates the sandbox of a pod, runs its init containers in order and starts
	// its sidecars and main containers. It returns those, in the order in which they were
	// started. A pod that runs already (the same UID) is adopted: its containers are
	// returned and nothing is started.
	StartPod(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error)
	// RestartContainer replaces a container of a running pod that has exited by a new
	// one, and returns the ID of the new one. The exited one is removed.
	RestartContainer(ctx context.Context, pod *v1.Pod, exited lifecycle.Container) (id string, err error)
	// StopPod removes the sandbox of a pod. Callers stop its containers first. An unknown
	// pod is no error.
	StopPod(ctx context.Context, pod *v1.Pod) error
	// Close closes the connection to the runtime. Pods keep running.
	Close() error
}

// HashAnnotation is the annotation with the hash of a pod's manifest: the kubelet's
// ConfigHashAnnotationKey.
const HashAnnotation = "kubernetes.io/config.hash"

// ErrChanged reports that a running pod was started from another manifest than its
// present one.
var ErrChanged = errors.New("the manifest of the pod has changed since it was started")

// Adopter is a [Runtime] that can find the pods that an earlier process of the agent left
// running, without starting any: an agent that is restarted during a shutdown must stop
// these pods and start none.
type Adopter interface {
	// Adopt returns the containers of a pod that run, in the order in which they were
	// started; found is false if the runtime does not know the pod. If err wraps
	// [ErrChanged], the containers are valid and were started from another manifest of
	// the pod.
	Adopt(ctx context.Context, pod *v1.Pod) (containers []lifecycle.Container, found bool, err error)
}

// StatusReader is a [Runtime] that can report the status of a container.
type StatusReader interface {
	// ContainerStatus returns the State of a container (with exit code, reason and times
	// if it has ended), its ContainerID in the form runtime://id, and its ImageID. Fields
	// that the runtime does not know are empty. If it does not know the container, the
	// error wraps lifecycle.ErrContainerNotFound.
	ContainerStatus(ctx context.Context, containerID string) (v1.ContainerStatus, error)
}
