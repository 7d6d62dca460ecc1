//go:build go1.25

package virtualkubelet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A pod is deleted with a grace period of 3600 s. Its regular container ends at once, but its sidecar ignores the stop signal.
// A second deletion shortens the grace period to 600 s, and the runtime then ends the sidecar at once. Until then no status
// says that the regular container has ended: virtual-kubelet's controller would remove the pod while the sidecar runs.
func TestControllerWaitsForSidecars(t *testing.T) {
	c := newCluster(t, 600) // a stop with a timeout of 600 s or less ends a container at once
	c.rt.scripts["proxy"] = lifecycletest.Script{IgnoreTerm: true}
	pod := podOf(plain("app"))
	pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
	c.createRunning(pod)
	c.kubectlDelete(3600)
	c.awaitStop("proxy", 3600)
	c.kubectlDelete(600)
	c.awaitStop("proxy", 600)
	c.awaitPod(func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodSucceeded })
}

// A pod whose container ignores the stop signal is deleted with a grace period of 3600 s, and then by force, which stops the
// container with a timeout of 2 s. Only this stop ends the container. A new pod with the same name is created right after the
// forced deletion. It runs only after the old pod's container has exited.
func TestControllerReplacesAPodAfterItsEnd(t *testing.T) {
	c := newCluster(t, 2) // a stop with a timeout of 2 s or less ends a container at once
	c.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
	c.createRunning(podOf(plain("app")))
	c.kubectlDelete(3600)
	c.awaitStop("app", 3600)
	c.kubectlDelete(0)
	c.createRunning(podOf(plain("app")))
	require.Len(t, c.rt.Exits(), 1, "the old container has exited")
}

// A pod is deleted while its init container runs, and its regular container has not started. virtual-kubelet's controller
// removes a deleted pod at once if its status has no running container. Here it must wait: the init container exits at
// its stop signal, and the pod gets a final status.
func TestControllerWaitsForInitContainers(t *testing.T) {
	c := newCluster(t, 2) // the timeout of 3600 s is longer, so the stop below only sends a signal, which init obeys
	pod := podOf(plain("app"))
	pod.Spec.InitContainers = []v1.Container{plain("init")}
	c.create(pod)
	c.awaitPod(func(pod *v1.Pod) bool {
		return len(pod.Status.InitContainerStatuses) == 1 && pod.Status.InitContainerStatuses[0].State.Running != nil
	})
	c.kubectlDelete(3600)
	c.awaitStop("init", 3600)
	c.awaitPod(func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
}
