package containerdtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

const (
	waitAtMost = 20 * time.Second
	pollEvery  = 20 * time.Millisecond
)

// A server runs pods and records their exits: here 137, because StopContainer without a timeout kills. When the test of the
// server ends, no process, mount, file or cgroup of it is left, although a container was still running.
func TestServerRunsPodsAndLeavesNothing(t *testing.T) {
	containerdtest.Each(t, testServerRunsPodsAndLeavesNothing)
}

// testServerRunsPodsAndLeavesNothing runs the test with one version of containerd.
func testServerRunsPodsAndLeavesNothing(t *testing.T, build containerdtest.Build) {
	var socket, container string
	t.Run("server", func(t *testing.T) {
		server := build.Start(t, containerdtest.Image{Name: "nginx:1.16.1", Command: []string{"/bin/sleep", "1000"}})
		socket = server.Socket()
		container = runContainer(t, server.Runtime(), "nginx:1.16.1")

		_, err := server.Runtime().StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: container})
		require.NoError(t, err)
		require.Eventually(t, func() bool { return server.Exits()[container].Code == 137 }, waitAtMost, pollEvery)
		status, err := server.Runtime().ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: container})
		require.NoError(t, err)
		require.Equal(t, status.GetStatus().GetFinishedAt(), server.Exits()[container].At.UnixNano())

		runContainer(t, server.Runtime(), "nginx:1.16.1") // runs when the server ends
	})
	if container == "" {
		t.Skip("the server was skipped")
	}
	require.NoDirExists(t, filepath.Dir(socket))
	require.Empty(t, processesWith(t, socket))
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), filepath.Dir(socket))
	require.Empty(t, cgroupsOf(t, container))
}

// runContainer starts a pod with one container of the image, and returns the container's ID.
func runContainer(t *testing.T, runtime runtimeapi.RuntimeServiceClient, image string) string {
	t.Helper()
	name := strings.ToLower(filepath.Base(t.TempDir())) // unique
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}},
	}
	pod, err := runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: sandbox})
	require.NoError(t, err)
	created, err := runtime.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod.GetPodSandboxId(), SandboxConfig: sandbox,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
			Image:    &runtimeapi.ImageSpec{Image: image},
			Linux:    &runtimeapi.LinuxContainerConfig{},
		},
	})
	require.NoError(t, err)
	_, err = runtime.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	require.NoError(t, err)
	return created.GetContainerId()
}

// processesWith returns the command lines that contain text.
func processesWith(t *testing.T, text string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []string
	for _, line := range lines {
		if content, err := os.ReadFile(line); err == nil && strings.Contains(string(content), text) {
			found = append(found, strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	return found
}

// cgroupsOf returns the cgroups of a container, in cgroup v1 or v2.
func cgroupsOf(t *testing.T, container string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/k8s.io/", "/sys/fs/cgroup/*/k8s.io/"} {
		groups, err := filepath.Glob(pattern + container)
		require.NoError(t, err)
		found = append(found, groups...)
	}
	return found
}
