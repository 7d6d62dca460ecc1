package virtualkubelet

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

var (
	_ node.PodLifecycleHandler = (*Provider)(nil)
	_ node.PodNotifier         = (*Provider)(nil)
	_ shutdown.PodKiller       = (*Provider)(nil)
)

// Runtime is what the author of a provider implements: four methods, and RunInContainer
// of [lifecycle.CommandRunner] if exec hooks are to work. The methods may be called
// concurrently. They need not know about grace periods, hooks, order or deletions.
type Runtime interface {
	// Runtime has StopContainer and documents it.
	lifecycle.Runtime
	// ExitWatcher has Exited. It is called for every container that was started or
	// adopted. A nil channel means that exits cannot be watched; a [RunningLister] is polled then.
	lifecycle.ExitWatcher

	// StartContainer starts one container and returns its ID when it runs. The ID must
	// not be empty, and no other container may have it; one that is started again may have the ID
	// of its last run, and Exited then is that of the new run. Init containers, sidecars and
	// regular containers are started in the same way, for the first time one at a time for
	// each pod and in the order of its spec. The arguments must not be modified or kept.
	//
	// When the pod is deleted during the start, or the provider is closed, ctx ends; a container
	// that starts nevertheless is stopped with its pod. An error says that the container does not
	// run: it is started again with the back-off if the restart policy repeats failures, and else has
	// the reason StartError and the exit code 128, and the pod, of which nothing more is started, is
	// stopped and Failed. After the end of ctx, an error
	// that wraps [lifecycle.ErrContainerNotFound] means that no container runs, and an ID
	// together with another error makes the provider stop that container. With neither,
	// the provider does not know whether the container runs, and never reports the pod as
	// ended.
	StartContainer(ctx context.Context, pod *v1.Pod, container *v1.Container) (id string, err error)
	// ExitCode returns the exit code of a container that has exited; false if it is not known.
	// It is called once for each container and must not block. With an unknown exit code the
	// container has failed, with 137 and ContainerStatusUnknown, as in the kubelet. One that was
	// killed has the code 137 in container runtimes, and so its pod is Failed.
	ExitCode(containerID string) (code int32, known bool)
}

// RunningLister may be implemented by a [Runtime] that cannot tell by itself when a container has
// exited: its Exited gives nil.
type RunningLister interface {
	// RunningContainers returns the IDs of the containers that run. It is called once in each
	// [Options.PollInterval], and its ctx ends after 30 s. A container that was started before the
	// call and is missing has exited.
	RunningContainers(ctx context.Context) (ids []string, err error)
}
