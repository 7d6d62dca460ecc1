package virtualkubelet

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var errAdopts = errors.New("a PodRuntime tells by itself which pods it has")

// Adopted is a pod that an earlier process of the agent has left running.
type Adopted struct {
	// Pod is the pod, as the API server or the agent's own records have it. It must not
	// be nil.
	Pod *v1.Pod
	// Containers are the containers that run now, with whether their preStop hooks are
	// known to have run. Nil means [lifecycle.ContainersOf] the pod. Of the pod's other
	// containers those have never been started that have no status, or one that is waiting
	// without a last end, and that come after all others in the spec. The rest counts as
	// terminated: as their status says, or with an unknown exit code. Unless the pod was
	// deleted, the restart policy has them started again.
	Containers []lifecycle.Container
	// Alive is true if this process has asked the API server and nobody has deleted the
	// pod. A later deletion is then new and has its full grace period. If it is false, a
	// deletion may be older than this process and has what its deletionTimestamp leaves,
	// until CreatePod or UpdatePod has shown that the pod is not deleted.
	Alive bool
}
