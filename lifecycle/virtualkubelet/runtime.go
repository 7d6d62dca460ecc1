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

// Runtime runs containers. The author of a provider implements its four methods, which may be called
// concurrently. They need not handle grace periods, hooks, order or deletions.
//
// A Runtime may also be a [lifecycle.CommandRunner], without which exec hooks fail, and a
// [lifecycle.ExitWatcher]: Running is then called as soon as a container exits, and the sleep hook of a
// container that has exited ends at once.
type Runtime interface {
	// Runtime has Running and StopContainer, and documents them.
	//
	// Running alone decides what is running: a container that its list lacks has ended. Running is called
	// for each running pod in each [Options.PollInterval], when a container exits, after a failed start,
	// and during a termination. It must list a container until ExitCode knows the exit code. Otherwise
	// Running is called once more, up to 1 s later; if the container is still missing, that is logged,
	// and the exit code is unknown.
	lifecycle.Runtime

	// StartContainer starts one container and returns its ID, which must be unique and neither empty nor
	// prefixed ("containerd://"). A restarted container may reuse its own ID; the ID then means the new
	// run. Containers of one pod are first started one at a time, in the order of its spec. The
	// arguments must not be modified or kept.
	//
	// ctx ends when the pod is deleted or the provider is closed; a container that starts nevertheless
	// is stopped with its pod. After an error, Running tells whether the container runs. If it does not,
	// it is restarted with back-off if the restart policy allows it. Otherwise it ends with StartError
	// and exit code 128, and its pod is stopped and Failed.
	StartContainer(ctx context.Context, pod *v1.Pod, container *v1.Container) (id string, err error)
	// ExitCode returns the exit code of a container that Running no longer lists, or false if it is
	// unknown. It must not block. A container with an unknown exit code has failed with 137,
	// ContainerStatusUnknown, as in the kubelet.
	ExitCode(containerID string) (code int32, known bool)
}
