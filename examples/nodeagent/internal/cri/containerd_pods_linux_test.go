package cri_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// A restarted container runs beside the pod's other containers, and the one that had
// exited is removed.
func (c *containerd) testContainerIsRestarted(t *testing.T) {
	pod := realPod("restart", v1.Container{Name: "main", Image: "obedient:1"}, v1.Container{Name: "other", Image: "obedient:1"})
	containers := c.startReady(t, pod)
	old := containers[0]
	for attempt := range 2 {
		require.NoError(t, c.runtime.StopContainer(t.Context(), old.ID, 60))
		id, err := c.runtime.RestartContainer(t.Context(), pod, old)
		require.NoError(t, err)
		require.NotEqual(t, old.ID, id)
		status := c.status(t, id)
		require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, status.GetState())
		require.EqualValues(t, attempt+1, status.GetMetadata().GetAttempt())
		_, err = c.runtime.ContainerStatus(t.Context(), old.ID)
		require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
		old.ID = id
	}
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, c.status(t, containers[1].ID).GetState())
	adopted, found, err := c.runtime.Adopt(t.Context(), pod)
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, adopted, 2)
	_, err = c.runtime.RestartContainer(t.Context(), pod, lifecycle.Container{Name: "main", ID: "gone"})
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
}

func (c *containerd) testPodIsAdopted(t *testing.T) {
	pod := realPod("adopted", v1.Container{Name: "first", Image: "obedient:1"}, v1.Container{Name: "second", Image: "stubborn:1"})
	first := connect(t, c.server, cri.Options{})
	started, err := first.StartPod(t.Context(), pod)
	require.NoError(t, err)
	require.NoError(t, first.Close())

	second := connect(t, c.server, cri.Options{})
	adopted, err := second.StartPod(t.Context(), pod)
	require.NoError(t, err)
	require.Equal(t, started, adopted)
	require.NoError(t, second.StopContainer(t.Context(), adopted[0].ID, 60))
	adopted, err = second.StartPod(t.Context(), pod)
	require.NoError(t, err)
	require.Equal(t, started[1:], adopted, "only the containers that run")
}

// Adopt returns containers that were started from another manifest together with
// ErrChanged, and leaves them running.
func (c *containerd) testPodOfAnotherManifestIsAdopted(t *testing.T) {
	pod := realPod("outdated", v1.Container{Name: "main", Image: "obedient:1"})
	pod.Annotations = map[string]string{podruntime.HashAnnotation: "one"}
	started, err := c.runtime.StartPod(t.Context(), pod)
	require.NoError(t, err)
	adopted, found, err := c.runtime.Adopt(t.Context(), pod)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, started, adopted)
	pod.Annotations[podruntime.HashAnnotation] = "two"
	adopted, found, err = c.runtime.Adopt(t.Context(), pod)
	require.ErrorIs(t, err, podruntime.ErrChanged)
	require.True(t, found)
	require.Equal(t, started, adopted)
}

func (c *containerd) testInitContainersAndSidecars(t *testing.T) {
	pod := realPod("inits", v1.Container{Name: "main", Image: "obedient:1"})
	pod.Spec.InitContainers = []v1.Container{
		{Name: "plain", Image: "obedient:1", Command: []string{"/bin/sleep", "0.5"}},
		{Name: "sidecar", Image: "obedient:1", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)},
	}
	containers, err := c.runtime.StartPod(t.Context(), pod)
	require.NoError(t, err)
	require.Equal(t, "sidecar", containers[0].Name)
	require.Equal(t, "main", containers[1].Name)
	require.Len(t, containers, 2)

	list, err := c.server.Runtime().ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": "inits", "io.kubernetes.container.name": "plain"},
	}})
	require.NoError(t, err)
	plain := c.status(t, list.GetContainers()[0].GetId())
	require.LessOrEqual(t, plain.GetFinishedAt(), c.status(t, containers[0].ID).GetStartedAt())
}

func (c *containerd) testManifestIsPassedOn(t *testing.T) {
	logs := t.TempDir()
	runtime := connect(t, c.server, cri.Options{LogDirectory: logs})
	_, err := runtime.StartPod(t.Context(), realPod("passed", v1.Container{
		Name: "main", Image: "obedient:1", WorkingDir: "/tmp",
		Command: []string{"/bin/sh", "-c"}, Args: []string{`echo "$GREETING from $PWD"; touch ready`},
		Env: []v1.EnvVar{{Name: "GREETING", Value: "hello"}},
	}))
	require.NoError(t, err)
	log := filepath.Join(logs, "default_passed_passed-uid", "main", "0.log")
	require.Eventually(t, func() bool {
		content, err := os.ReadFile(log)
		return err == nil && len(content) > 0
	}, waitAtMost, pollEvery)
	content, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(content), "stdout F hello from /tmp\n")
}

func (c *containerd) testStartFails(t *testing.T) {
	_, err := c.runtime.StartPod(t.Context(), realPod("fails", v1.Container{Name: "main", Image: "obedient:1", Command: []string{"/bin/nothing"}}))
	require.ErrorContains(t, err, `pod default/fails, container "main": failed to start`)
	c.requireNoPod(t, "fails")
}

func (c *containerd) testImageIsMissing(t *testing.T) {
	_, err := c.runtime.StartPod(t.Context(), realPod("missing", v1.Container{Name: "main", Image: "nginx:1.99"}))
	require.EqualError(t, err, `pod default/missing, container "main": image "nginx:1.99" is not in the container runtime, and images are not pulled`)
	c.requireNoPod(t, "missing")
}

func (c *containerd) testPodIsRemoved(t *testing.T) {
	pod := realPod("removed", v1.Container{Name: "main", Image: "stubborn:1"})
	containers := c.startReady(t, pod)
	require.NoError(t, c.runtime.StopPod(t.Context(), pod))
	c.requireNoPod(t, "removed")
	_, err := c.runtime.ContainerStatus(t.Context(), containers[0].ID)
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	require.NoError(t, c.runtime.StopPod(t.Context(), pod))
}

func (c *containerd) requireNoPod(t *testing.T, name string) {
	t.Helper()
	list, err := c.server.Runtime().ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": name},
	}})
	require.NoError(t, err)
	require.Empty(t, list.GetItems())
}
