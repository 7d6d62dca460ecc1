package criruntime_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// A kubelet has started a pod. Pods rebuilds the pod from what the runtime knows: identity, labels, grace period, preStop hook,
// ports, network and state. The kubelet's own labels are left out.
func TestPodsReadsTheKubeletsLabelsAndAnnotations(t *testing.T) {
	cri := newFake()
	cri.network = &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.7", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::7"}}}
	runtime := cri.dial(t, criruntime.Options{HostIP: hostIP})
	hook := v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/bye", Port: intstr.FromString("admin")}}
	pod := podWithGrace("web", 45, withHook(hook), func(pod *v1.Pod) {
		pod.Labels = map[string]string{"app": "web", "io.kubernetes.pod.name": "the kubelet writes its own value over this one"}
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		pod.Spec.HostNetwork, pod.Spec.HostPID = false, true
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{Name: "admin", ContainerPort: 8081}}
		pod.Spec.Containers[0].TerminationMessagePath, pod.Spec.Containers[0].TerminationMessagePolicy = "/dev/log", v1.TerminationMessageReadFile
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "log", Image: "fluent"})
	})
	_, ids := kubeletOf(runtime).runPod(t, pod)
	cri.containers[ids[0]].config.Image.Image = "sha256:1"      // as in a kubelet, the ID of the pulled image; UserSpecifiedImage is "busybox"
	cri.containers[ids[1]].config.Image.UserSpecifiedImage = "" // as in a runtime that does not store this field; Image is "fluent"

	pods, err := runtime.Pods(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 1)
	got := pods[0]
	require.Equal(t, pod.Name, got.Name)
	require.Equal(t, pod.Namespace, got.Namespace)
	require.Equal(t, pod.UID, got.UID)
	require.Equal(t, map[string]string{"app": "web"}, got.Labels)
	require.Equal(t, pod.Annotations, got.Annotations)
	require.Equal(t, pod.Spec, got.Spec)
	require.Nil(t, got.DeletionGracePeriodSeconds)
	require.Equal(t, v1.PodRunning, got.Status.Phase)
	require.Equal(t, hostIP, got.Status.HostIP)
	require.Equal(t, "10.0.0.7", got.Status.PodIP)
	require.Equal(t, []v1.PodIP{{IP: "10.0.0.7"}, {IP: "fd00::7"}}, got.Status.PodIPs)
	require.ElementsMatch(t, ids, runningIDs(t, runtime, got))
	require.Equal(t, "fake://"+ids[0], got.Status.ContainerStatuses[0].ContainerID)
	require.False(t, got.Status.ContainerStatuses[0].State.Running.StartedAt.IsZero())
}

const hostIP = "192.0.2.1"

// podNode is a fake runtime on which a kubelet starts the pod shop/web.
type podNode struct {
	*fake
	kubelet

	runtime *criruntime.Runtime
}

func newPodNode(t *testing.T) podNode {
	t.Helper()
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{HostIP: hostIP})
	return podNode{fake: cri, kubelet: kubeletOf(runtime), runtime: runtime}
}

// onlyPod returns the pod that Pods lists. It must be shop/web, with a state of each container, and the only one.
func (n podNode) onlyPod(t *testing.T) *v1.Pod {
	t.Helper()
	pods, err := n.runtime.Pods(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 1)
	require.Equal(t, "shop/web web-uid", pods[0].Namespace+"/"+pods[0].Name+" "+string(pods[0].UID))
	for _, spec := range pods[0].Spec.Containers {
		hasState := slices.ContainsFunc(pods[0].Status.ContainerStatuses, func(status v1.ContainerStatus) bool { return status.Name == spec.Name })
		require.True(t, hasState, spec.Name)
	}
	return pods[0]
}

// onlyStatus returns the status of the only container of onlyPod.
func (n podNode) onlyStatus(t *testing.T) v1.ContainerStatus {
	t.Helper()
	pod := n.onlyPod(t)
	require.Len(t, pod.Spec.Containers, 1)
	require.Len(t, pod.Status.ContainerStatuses, 1)
	return pod.Status.ContainerStatuses[0]
}

// Pods keeps a grace period of 0: it is not the same as none.
func TestPodsKeepsAGracePeriodOfZero(t *testing.T) {
	n := newPodNode(t)
	n.runPod(t, podWithGrace("web", 0))
	require.EqualValues(t, 0, *n.onlyPod(t).Spec.TerminationGracePeriodSeconds)
}

// A pod is deleted with a grace period of 7 s. A kubelet writes that into the annotations of a container that it creates later,
// from which Pods reads it.
func TestPodsReadsTheGracePeriodOfADeletion(t *testing.T) {
	n, pod := newPodNode(t), podWithGrace("web", 30)
	sandbox, _ := n.runPod(t, pod)
	grace := int64(7)
	pod.DeletionGracePeriodSeconds = &grace
	n.start(t, n.create(t, pod, &v1.Container{Name: "late"}, sandbox, firstRun))
	got := n.onlyPod(t)
	require.EqualValues(t, 30, *got.Spec.TerminationGracePeriodSeconds)
	require.EqualValues(t, 7, *got.DeletionGracePeriodSeconds)
}

// The annotations of a container are invalid. Pods lists the pod without what they should say.
func TestPodsIgnoresInvalidAnnotations(t *testing.T) {
	n := newPodNode(t)
	_, ids := n.runPod(t, podWithGrace("web", 30))
	for _, name := range []string{"pod.terminationGracePeriod", "container.preStopHandler", "container.ports", "container.restartCount"} {
		n.containers[ids[0]].config.Annotations["io.kubernetes."+name] = `{"exec":{"command":["/bin/true"]},"sleep":1}`
	}
	require.Nil(t, n.onlyPod(t).Spec.TerminationGracePeriodSeconds)
	require.Equal(t, []v1.Container{{Name: "web", Image: "busybox"}}, n.onlyPod(t).Spec.Containers)
}

// A container has exited and runs again. Pods has the second run.
func TestPodsHasTheNewestRunOfAContainer(t *testing.T) {
	n, pod := newPodNode(t), podWithGrace("web", 30)
	sandbox, ids := n.runPod(t, pod)
	n.exitWith(ids[0], 1)
	n.start(t, n.create(t, pod, &pod.Spec.Containers[0], sandbox, secondRun))
	require.EqualValues(t, 1, n.onlyStatus(t).RestartCount)
	require.NotNil(t, n.onlyStatus(t).State.Running)
}

// Two runs of a container are running, and a third was created. The pod has the container once, as running.
func TestPodsHasARunningContainerOnce(t *testing.T) {
	n, pod := newPodNode(t), podWithGrace("web", 30)
	sandbox, _ := n.runPod(t, pod)
	n.start(t, n.create(t, pod, &pod.Spec.Containers[0], sandbox, secondRun))
	n.create(t, pod, &pod.Spec.Containers[0], sandbox, thirdRun)
	require.NotNil(t, n.onlyStatus(t).State.Running)
}

// A pod whose container was created and not started is Pending.
func TestPodsOfACreatedContainer(t *testing.T) {
	n, pod := newPodNode(t), podWithGrace("web", 30)
	n.create(t, pod, &pod.Spec.Containers[0], n.runSandbox(t, pod), firstRun)
	require.Equal(t, v1.PodPending, n.onlyPod(t).Status.Phase)
	require.Equal(t, "ContainerCreating", n.onlyStatus(t).State.Waiting.Reason)
}

// A container has exited. Pods has its exit code.
func TestPodsOfAnExitedContainer(t *testing.T) {
	n := newPodNode(t)
	_, ids := n.runPod(t, podWithGrace("web", 30))
	n.exitWith(ids[0], 3)
	require.EqualValues(t, 3, n.onlyStatus(t).State.Terminated.ExitCode)
}

// The runtime does not know the state of a container, and its sandbox is not ready. The container may run, so it is running.
func TestPodsOfAContainerInAnUnknownState(t *testing.T) {
	n := newPodNode(t)
	sandbox, ids := n.runPod(t, podWithGrace("web", 30))
	n.sandboxes[sandbox].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	n.change(ids[0], func(c *runtimeapi.ContainerStatus) { c.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN })
	require.NotNil(t, n.onlyStatus(t).State.Running)
}

// A pod has eight sandboxes of earlier boots, of which the runtime knows no network, and a ready one on the host's network. Pods
// takes the network from the ready one.
func TestPodsUsesTheReadySandbox(t *testing.T) {
	n := newPodNode(t)
	for range 8 {
		old := n.runSandbox(t, podWithGrace("web", 30))
		n.sandboxes[old].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		delete(n.configs, old)
	}
	n.runPod(t, podWithGrace("web", 30))
	require.True(t, n.onlyPod(t).Spec.HostNetwork)
}

// A pod on the host's network, as each pod of podWithGrace is, has the host's IP.
func TestPodsOnTheHostNetwork(t *testing.T) {
	n := newPodNode(t)
	n.runPod(t, podWithGrace("web", 30))
	require.True(t, n.onlyPod(t).Spec.HostNetwork)
	require.Equal(t, hostIP, n.onlyPod(t).Status.PodIP)
}

// The runtime fails to answer which network a pod's sandbox has. Pods lists the pod nevertheless.
func TestPodsWithAnUnknownNetwork(t *testing.T) {
	n := newPodNode(t)
	n.runPod(t, podWithGrace("web", 30))
	n.fail("PodSandboxStatus", status.Error(codes.Unknown, "no network namespace"))
	require.Len(t, n.onlyPod(t).Spec.Containers, 1)
}

// A pod's sandbox and container have no labels of a kubelet. Pods takes their names from their metadata.
func TestPodsWithoutTheKubeletsLabels(t *testing.T) {
	n := newPodNode(t)
	sandbox, ids := n.runPod(t, podWithGrace("web", 30))
	n.sandboxes[sandbox].Labels, n.containers[ids[0]].config.Labels = nil, nil
	require.Equal(t, "web", n.onlyPod(t).Spec.Containers[0].Name)
}

// Pods omits a pod that has ended: its sandbox is not ready, and its containers have exited. A pod with a ready sandbox has not
// ended, even if it has no containers.
func TestPodsOmitsEndedPods(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	kubelet := kubeletOf(runtime)
	sandbox, ids := kubelet.runPod(t, podWithGrace("ended", 30))
	cri.exitWith(ids[0], 0)
	cri.sandboxes[sandbox].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	kubelet.runPod(t, podWithGrace("web", 30))
	kubelet.runSandbox(t, podWithGrace("begins", 30))

	pods, err := runtime.Pods(t.Context())
	require.NoError(t, err)
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	require.Equal(t, []string{"begins", "web"}, names)
}

// While the runtime is down, before its start and between two starts, Pods returns an error and not an empty list: with an empty
// list a shutdown would release the inhibitor lock at once. While the runtime runs, Pods finds its pod.
func TestPodsFailsWhileTheRuntimeIsDown(t *testing.T) {
	folder, err := os.MkdirTemp("", "cri")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	socket := filepath.Join(folder, "socket")
	runtime := dial(t, "unix://"+socket, criruntime.Options{})
	cri := newFake()
	for range 2 {
		pods, err := runtime.Pods(t.Context())
		require.ErrorContains(t, err, "failed to list the pods of the container runtime: ")
		require.Nil(t, pods)

		stop, err := cri.serveAt(socket)
		require.NoError(t, err)
		require.Eventually(t, func() bool { _, err := runtime.Pods(t.Context()); return err == nil }, waitAtMost, pollEvery)
		if len(cri.sandboxes) == 0 {
			kubeletOf(runtime).runPod(t, podWithGrace("web", 30))
		}
		pods, err = runtime.Pods(t.Context())
		require.NoError(t, err)
		require.Len(t, pods, 1)
		stop()
	}
	_, err = runtime.Pods(t.Context())
	require.Error(t, err)
}

// Pods fails if the runtime does not answer one of its calls: a pod that an incomplete list lacks would not be stopped in a
// shutdown.
func TestPodsFailsIfOneCallIsUnanswered(t *testing.T) {
	for _, method := range []string{"ListContainers", "ListPodSandbox", "PodSandboxStatus", "ContainerStatus"} {
		for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded} {
			cri := newFake()
			runtime := cri.dial(t, criruntime.Options{})
			_, ids := kubeletOf(runtime).runPod(t, podWithGrace("web", 30))
			cri.exitWith(ids[0], 0) // Pods asks for the ContainerStatus of exited containers
			cri.fail(method, status.Error(code, "away"))
			_, err := runtime.Pods(t.Context())
			require.Error(t, err, "%s %s", method, code)
		}
	}
}

// Pods does not wait for the runtime when its context has ended.
func TestPodsEndsWithItsContext(t *testing.T) {
	runtime := newFake().dial(t, criruntime.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := runtime.Pods(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// A container is removed after it was listed, and before its status is read. Pods omits the container and does not fail.
func TestPodsOmitsARemovedContainer(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	_, ids := kubeletOf(runtime).runPod(t, podWithGrace("web", 30))
	cri.exitWith(ids[0], 0)
	cri.fail("ContainerStatus", status.Error(codes.NotFound, "gone"))
	pods, err := runtime.Pods(t.Context())
	require.NoError(t, err)
	require.Empty(t, pods[0].Spec.Containers)
}

// PodStatus replaces the statuses of the containers that the runtime has, each in the list for its kind. A container
// that the spec lacks ("unlisted") is added to ContainerStatuses. All other statuses stay, and the caller's pod is not
// changed.
func TestPodStatusReplacesContainerStatuses(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	always := v1.ContainerRestartPolicyAlways
	ended := v1.ContainerStatus{Name: "migrate", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed"}}}
	pod := podWithGrace("web", 30, func(pod *v1.Pod) {
		pod.Spec.InitContainers = []v1.Container{{Name: "migrate"}, {Name: "proxy", RestartPolicy: &always}}
		pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
		pod.Status = v1.PodStatus{
			QOSClass: v1.PodQOSBurstable, InitContainerStatuses: []v1.ContainerStatus{ended},
			ContainerStatuses: []v1.ContainerStatus{{Name: "web", ContainerID: "fake://old"}},
		}
	})
	kubelet, ids := kubeletOf(runtime), map[string]string{}
	sandbox := kubelet.runSandbox(t, pod)
	for _, name := range []string{"web", "proxy", "debug", "unlisted"} {
		ids[name] = kubelet.create(t, pod, &v1.Container{Name: name}, sandbox, firstRun)
		kubelet.start(t, ids[name])
	}
	cri.exitWith(ids["web"], 3)
	before := pod.DeepCopy()

	got := runtime.PodStatus(t.Context(), pod)
	require.Equal(t, before, pod)
	require.Equal(t, v1.PodQOSBurstable, got.QOSClass)
	require.Len(t, got.ContainerStatuses, 2)
	require.Equal(t, "fake://"+ids["web"], got.ContainerStatuses[0].ContainerID)
	require.EqualValues(t, 3, got.ContainerStatuses[0].State.Terminated.ExitCode)
	require.Equal(t, "unlisted", got.ContainerStatuses[1].Name)
	require.Equal(t, ended, got.InitContainerStatuses[0])
	require.NotNil(t, got.InitContainerStatuses[1].State.Running)
	require.Equal(t, "debug", got.EphemeralContainerStatuses[0].Name)
}

// PodStatus returns nil if the runtime does not know the pod, if it does not answer, and after Close.
func TestPodStatusIsNilIfTheRuntimeCannotTellIt(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	pod := podWithGrace("web", 30)
	_, ids := kubeletOf(runtime).runPod(t, pod)
	cri.exitWith(ids[0], 3)
	require.NotNil(t, runtime.PodStatus(t.Context(), pod))
	require.Nil(t, runtime.PodStatus(t.Context(), podWithGrace("unknown", 30)))
	cri.fail("ContainerStatus", status.Error(codes.Unavailable, "away"))
	require.Nil(t, runtime.PodStatus(t.Context(), pod), "the runtime does not answer")
	cri.succeed("ContainerStatus")
	require.NoError(t, runtime.Close())
	require.Nil(t, runtime.PodStatus(t.Context(), pod), "the Runtime was closed")
}

// A container is removed after the runtime has listed it, and before it is asked for its status. PodStatus keeps the status
// that the pod already has.
func TestPodStatusKeepsTheStatusOfARemovedContainer(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	pod := podWithGrace("web", 30)
	_, ids := kubeletOf(runtime).runPod(t, pod)
	cri.exitWith(ids[0], 3)
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "web", ContainerID: "fake://old"}}
	cri.fail("ContainerStatus", status.Error(codes.NotFound, "removed meanwhile"))
	require.Equal(t, "fake://old", runtime.PodStatus(t.Context(), pod).ContainerStatuses[0].ContainerID)
}

// The runtime lists a container as exited, but has lost its exit code. The status has the kubelet's exit code for an unknown
// one: 137, because 0 would be a success.
func TestPodStatusOfAContainerWithALostExitCode(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	pod := podWithGrace("web", 30)
	_, ids := kubeletOf(runtime).runPod(t, pod)
	cri.exitWith(ids[0], 3)
	cri.fail("ContainerStatus", status.Error(codes.Internal, "exit code is lost"))
	lost := runtime.PodStatus(t.Context(), pod).ContainerStatuses[0].State.Terminated
	require.EqualValues(t, 137, lost.ExitCode)
	require.Equal(t, "ContainerStatusUnknown", lost.Reason)
}
