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

// Runtime is what the author of a provider brings: four methods, and a fifth where
// exec hooks are to run, RunInContainer of [lifecycle.CommandRunner]. All may be called
// concurrently. It does what it is told: none of them has to know of grace periods,
// hooks, order or deletions.
type Runtime interface {
	// Runtime has StopContainer, and says what it is to do.
	lifecycle.Runtime
	// ExitWatcher has Exited. It is asked for every container that has started, or
	// that was adopted; a nil channel says that exits are not known.
	lifecycle.ExitWatcher

	// StartContainer starts one container and gives its ID, which no other container
	// has and which is not empty, once it runs. Plain init containers, sidecars and
	// regular containers are started alike, one at a time for a pod and in the order of
	// its spec. Neither argument may be changed or kept. When the pod is deleted
	// meanwhile, ctx ends; a container that comes up all the same is stopped. An error
	// fails the pod. After the end of ctx it says that no container runs if it wraps
	// [lifecycle.ErrContainerNotFound]; one that comes with an ID has that container
	// stopped; and with neither the pod is never told to have ended, as whether the
	// container runs is not known.
	StartContainer(ctx context.Context, pod *v1.Pod, container *v1.Container) (id string, err error)
	// ExitCode is that of a container whose ExitWatcher has told of its exit. It is
	// asked once for each, and must not block.
	ExitCode(containerID string) int32
}
