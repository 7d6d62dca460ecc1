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

// Runtime is what the author of a provider implements: four methods. The methods may be called
// concurrently. They need not know about grace periods, hooks, order or deletions.
//
// A Runtime may also be a [lifecycle.CommandRunner], without which exec hooks fail, and a
// [lifecycle.ExitWatcher], which ends the sleep hook of a container that has exited, and has Running
// called as soon as a container has exited.
type Runtime interface {
	// Runtime has Running and StopContainer and documents them.
	//
	// Running says what runs, and nothing else does: it is called for each pod of which something runs
	// in each [Options.PollInterval], when a container has exited, after a start that has failed, and
	// during a termination. A container that the list lacks has ended. It belongs in the list until
	// ExitCode knows its exit code. If ExitCode does not, one more list is asked for, up to a second
	// later, before the container has ended with an unknown exit code, which is logged.
	lifecycle.Runtime

	// StartContainer starts one container and returns its ID. No other container may have the ID, and
	// neither "" nor a prefix ("containerd://") is allowed; one that is started again may have the ID
	// of its last run, and what is told by that ID then is told of the new run. Init containers,
	// sidecars and regular containers are started in the same way, for the first time one at a time for
	// each pod and in the order of its spec. The arguments must not be modified or kept.
	//
	// When the pod is deleted during the start, or the provider is closed, ctx ends; a container
	// that starts nevertheless is stopped with its pod. After an error Running says whether the
	// container runs all the same. If it does not, it is started again with the back-off if the restart
	// policy repeats failures; else it has the reason StartError and the exit code 128, and its pod,
	// of which nothing more is started, is stopped and Failed.
	StartContainer(ctx context.Context, pod *v1.Pod, container *v1.Container) (id string, err error)
	// ExitCode returns the exit code of a container that Running lacks; false if it is not known. It
	// must not block. With an unknown exit code the container has failed, with 137 and
	// ContainerStatusUnknown, as in the kubelet. One that was killed has the code 137 in container
	// runtimes, and so its pod is Failed.
	ExitCode(containerID string) (code int32, known bool)
}
