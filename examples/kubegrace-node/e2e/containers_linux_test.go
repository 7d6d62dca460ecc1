//go:build e2e

package e2e_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubelet/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

// containerName returns the name of a container in the tests, pod/container, from the labels that a kubelet
// sets.
func containerName(labels map[string]string) string {
	return labels[types.KubernetesPodNameLabel] + "/" + labels[types.KubernetesContainerNameLabel]
}

// runningContainers returns the IDs of the running containers by name.
func runningContainers(t *testing.T, server *containerdtest.Server) map[string]string {
	t.Helper()
	list, err := server.Runtime().ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	require.NoError(t, err)
	ids := map[string]string{}
	for _, container := range list.GetContainers() {
		ids[containerName(container.GetLabels())] = container.GetId()
	}
	return ids
}

// exitsByName has the exit codes and times of containers, as containerd reported them, by name (pod/container).
type exitsByName map[string]containerdtest.Exit

// awaitExits waits until all of the given containers have exited, and returns their exits. It polls the statuses of
// the containers, because a containerd that was killed sends no more events.
func awaitExits(t *testing.T, server *containerdtest.Server, ids map[string]string) exitsByName {
	t.Helper()
	exits := exitsByName{}
	haveAllExited := assert.Eventually(t, func() bool {
		for name, id := range ids {
			response, err := server.Runtime().ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
			if status := response.GetStatus(); err == nil && status.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
				exits[name] = containerdtest.Exit{Code: uint32(status.GetExitCode()), At: time.Unix(0, status.GetFinishedAt())}
			}
		}
		return len(exits) == len(ids)
	}, time.Minute, 50*time.Millisecond)
	require.Truef(t, haveAllExited, "of %v these have exited: %v", ids, exits)
	return exits
}

// selectContainers returns the part of containers that has these names.
func selectContainers(containers map[string]string, names ...string) map[string]string {
	selected := maps.Clone(containers)
	maps.DeleteFunc(selected, func(name, _ string) bool { return !slices.Contains(names, name) })
	return selected
}

// lastExit returns the time of the last exit of the named containers, or of all containers if no name is
// given.
func (r exitsByName) lastExit(names ...string) time.Time {
	var last time.Time
	for name, exit := range r {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		if exit.At.After(last) {
			last = exit.At
		}
	}
	return last
}

// runPod starts a pod through the container runtime interface (CRI), with a kubelet's labels and annotations.
// Unlike a kubelet it starts all containers without waiting for one another, and leaves out plain init
// containers and all volumes except hostPath. The pod is in the host's network, so that no network plugin is
// needed.
func runPod(t *testing.T, client runtimeapi.RuntimeServiceClient, pod *v1.Pod) {
	t.Helper()
	sandbox, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: sandboxOf(pod)})
	require.NoError(t, err)
	containers := slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c v1.Container) bool { return c.RestartPolicy == nil }) // the sidecars
	for _, c := range append(containers, pod.Spec.Containers...) {
		created, err := client.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
			PodSandboxId: sandbox.GetPodSandboxId(), Config: containerOf(t, pod, &c), SandboxConfig: sandboxOf(pod),
		})
		require.NoError(t, err)
		_, err = client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
		require.NoError(t, err)
	}
}

// podLabels returns the labels by which a kubelet, and the agent, recognize what belongs to a pod.
func podLabels(pod *v1.Pod) map[string]string {
	return map[string]string{
		"io.kubernetes.pod.name": pod.Name, "io.kubernetes.pod.namespace": pod.Namespace, "io.kubernetes.pod.uid": string(pod.UID),
	}
}

// namespaces returns the namespaces of every sandbox and container: the host's network, and processes of their
// own.
func namespaces() *runtimeapi.NamespaceOption {
	return &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER}
}

// sandboxOf returns the sandbox that a kubelet would make for a pod.
func sandboxOf(pod *v1.Pod) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID)},
		Labels:   podLabels(pod), Annotations: pod.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: namespaces()}},
	}
}

// containerOf returns the container that a kubelet would make. The agent learns the grace period and the preStop hook
// from the container's annotations.
func containerOf(t *testing.T, pod *v1.Pod, c *v1.Container) *runtimeapi.ContainerConfig {
	t.Helper()
	labels, annotations := podLabels(pod), map[string]string{"io.kubernetes.container.restartCount": "0"}
	labels["io.kubernetes.container.name"] = c.Name
	annotations["io.kubernetes.pod.terminationGracePeriod"] = strconv.FormatInt(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds), 10)
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		hook, err := json.Marshal(c.Lifecycle.PreStop)
		require.NoError(t, err)
		annotations["io.kubernetes.container.preStopHandler"] = string(hook)
	}
	var mounts []*runtimeapi.Mount
	for _, m := range c.VolumeMounts {
		for _, v := range pod.Spec.Volumes {
			if v.Name == m.Name && v.HostPath != nil {
				mounts = append(mounts, &runtimeapi.Mount{ContainerPath: m.MountPath, HostPath: v.HostPath.Path})
			}
		}
	}
	return &runtimeapi.ContainerConfig{
		Mounts:   mounts,
		Metadata: &runtimeapi.ContainerMetadata{Name: c.Name}, Image: &runtimeapi.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image},
		Command: c.Command, Args: c.Args, Labels: labels, Annotations: annotations,
		Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: namespaces()}},
	}
}
