package criruntime_test

import (
	"encoding/json"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandboxConfig returns the configuration that a kubelet gives to a pod's sandbox.
func sandboxConfig(pod *v1.Pod) *runtimeapi.PodSandboxConfig {
	labels := maps.Clone(pod.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, podIdentityLabels(pod))
	network, processes := runtimeapi.NamespaceMode_POD, runtimeapi.NamespaceMode_CONTAINER
	if pod.Spec.HostNetwork {
		network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostPID {
		processes = runtimeapi.NamespaceMode_NODE
	}
	return &runtimeapi.PodSandboxConfig{
		Metadata:    &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID)},
		Labels:      labels,
		Annotations: pod.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: network, Pid: processes},
		}},
	}
}

// podIdentityLabels returns the kubelet's labels that identify the pod of a sandbox or container.
func podIdentityLabels(pod *v1.Pod) map[string]string {
	return map[string]string{
		"io.kubernetes.pod.name": pod.Name, "io.kubernetes.pod.namespace": pod.Namespace, "io.kubernetes.pod.uid": string(pod.UID),
	}
}

// containerConfig returns the configuration that a kubelet gives to a container, with the labels and annotations of the
// kubelet's functions newContainerLabels and newContainerAnnotations. attempt is the number of its restarts.
func containerConfig(t testing.TB, pod *v1.Pod, c *v1.Container, attempt uint32) *runtimeapi.ContainerConfig {
	t.Helper()
	labels := podIdentityLabels(pod)
	labels["io.kubernetes.container.name"] = c.Name
	annotations := map[string]string{
		"io.kubernetes.container.hash":                     "deadbeef",
		"io.kubernetes.container.restartCount":             strconv.Itoa(int(attempt)),
		"io.kubernetes.container.terminationMessagePath":   c.TerminationMessagePath,
		"io.kubernetes.container.terminationMessagePolicy": string(c.TerminationMessagePolicy),
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		annotations["io.kubernetes.pod.deletionGracePeriod"] = strconv.FormatInt(*grace, 10)
	}
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		annotations["io.kubernetes.pod.terminationGracePeriod"] = strconv.FormatInt(*grace, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		annotations["io.kubernetes.container.preStopHandler"] = toJSON(t, c.Lifecycle.PreStop)
	}
	if len(c.Ports) > 0 {
		annotations["io.kubernetes.container.ports"] = toJSON(t, c.Ports)
	}
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: attempt},
		Image:    &runtimeapi.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image},
		Command:  c.Command, Labels: labels, Annotations: annotations,
		Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			NamespaceOptions: sandboxConfig(pod).GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
	}
}

// toJSON returns a value as the kubelet writes it into an annotation.
func toJSON(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// kubelet starts pods as a kubelet does, through the runtime's own API.
type kubelet struct {
	client runtimeapi.RuntimeServiceClient
}

// runPod starts the sandbox and all containers of a pod, and returns their IDs.
func (k kubelet) runPod(t testing.TB, pod *v1.Pod) (sandbox string, ids []string) {
	t.Helper()
	sandbox = k.runSandbox(t, pod)
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			id := k.create(t, pod, &list[i], sandbox, firstRun)
			k.start(t, id)
			ids = append(ids, id)
		}
	}
	return sandbox, ids
}

// runSandbox starts the sandbox of a pod, without containers, and returns its ID.
func (k kubelet) runSandbox(t testing.TB, pod *v1.Pod) string {
	t.Helper()
	sandbox, err := k.client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: sandboxConfig(pod)})
	require.NoError(t, err)
	return sandbox.GetPodSandboxId()
}

// These are the attempts of a container: the numbers of its earlier runs.
const (
	firstRun = iota
	secondRun
	thirdRun
)

// createRequest returns the kubelet's request to create a container. attempt is the number of earlier runs.
func createRequest(t testing.TB, pod *v1.Pod, c *v1.Container, sandbox string, attempt uint32) *runtimeapi.CreateContainerRequest {
	t.Helper()
	return &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: containerConfig(t, pod, c, attempt), SandboxConfig: sandboxConfig(pod)}
}

// create creates a container without starting it. attempt is the number of earlier runs.
func (k kubelet) create(t testing.TB, pod *v1.Pod, c *v1.Container, sandbox string, attempt uint32) (id string) {
	t.Helper()
	created, err := k.client.CreateContainer(t.Context(), createRequest(t, pod, c, sandbox, attempt))
	require.NoError(t, err)
	return created.GetContainerId()
}

// start starts a created container.
func (k kubelet) start(t testing.TB, id string) {
	t.Helper()
	_, err := k.client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
	require.NoError(t, err)
}

// podWithGrace returns the pod shop/NAME with the UID NAME-uid and one container NAME. It is on the host's network, so that a real
// containerd needs no network plugin. The edits are applied to it in order.
func podWithGrace(name string, grace int64, edit ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(name + "-uid")},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: &grace, HostNetwork: true,
			Containers: []v1.Container{{Name: name, Image: "busybox"}},
		},
	}
	for _, e := range edit {
		e(pod)
	}
	return pod
}

// withHook gives the first container of a pod a preStop hook.
func withHook(hook v1.LifecycleHandler) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &hook} }
}
