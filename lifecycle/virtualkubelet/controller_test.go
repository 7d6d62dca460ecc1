//go:build go1.25

package virtualkubelet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The regular container of a deleted pod ends at once, but its sidecar ignores the stop signal until a second deletion shortens
// the grace period from 3600 s to 600 s. Until then no status says that the regular container has ended: virtual-kubelet's
// controller would remove the pod while the sidecar runs.
func TestControllerWaitsForSidecars(t *testing.T) {
	c := newCluster(t, 600) // the runtime kills a container at once if it is stopped with a timeout of 600 s or less
	c.rt.scripts["proxy"] = lifecycletest.Script{IgnoreTerm: true}
	pod := podOf(container("app"))
	pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
	c.createRunning(pod)
	c.kubectlDeleteWithGrace(3600)
	c.awaitStopWithTimeout("proxy", 3600)
	c.kubectlDeleteWithGrace(600)
	c.awaitStopWithTimeout("proxy", 600)
	c.awaitPod(func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodSucceeded })
}

// A pod whose container ignores the stop signal is deleted with a grace period of 3600 s, and then by force, which leaves it
// 1 s. Only the second stop ends the container. A new pod with the same name, created right after the forced deletion, runs
// only after that.
func TestControllerReplacesAPodAfterItsEnd(t *testing.T) {
	c := newCluster(t, 2) // the runtime kills a container at once if it is stopped with a timeout of 2 s or less
	c.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
	c.createRunning(podOf(container("app")))
	c.kubectlDeleteWithGrace(3600)
	c.awaitStopWithTimeout("app", 3600)
	c.kubectlDeleteWithGrace(0)
	c.createRunning(podOf(container("app")))
	require.Len(t, c.rt.Exits(), 1, "the old container has exited")
}

// A pod is deleted while its init container runs. virtual-kubelet's controller removes a deleted pod at once if no container in
// ContainerStatuses is running, and the regular container has not started. Here the controller must wait until the init container
// has ended at its stop signal, and the pod has its final status.
func TestControllerWaitsForInitContainers(t *testing.T) {
	c := newCluster(t, 0) // the runtime kills a container at once only if it is stopped with a timeout of 0 s
	pod := podOf(container("app"))
	pod.Spec.InitContainers = []v1.Container{container("init")}
	c.create(pod)
	c.awaitPod(func(pod *v1.Pod) bool {
		return len(pod.Status.InitContainerStatuses) == 1 && pod.Status.InitContainerStatuses[0].State.Running != nil
	})
	c.kubectlDeleteWithGrace(3600)
	c.awaitStopWithTimeout("init", 3600)
	c.awaitPod(func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
}
