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

// Pods reads a pod that a kubelet has started back from the runtime: its identity, labels, grace period, hook, ports, network
// and state.
func TestPodsReadsTheKubeletsLabelsAndAnnotations(t *testing.T) {
	cri := newFake()
	cri.network = &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.7", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::7"}}}
	runtime := cri.dial(t, criruntime.Options{HostIP: "192.0.2.1"})
	hook := v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/bye", Port: intstr.FromString("admin")}}
	pod := podWithGrace("web", 45, withHook(hook), func(pod *v1.Pod) {
		pod.Labels = map[string]string{"app": "web", "io.kubernetes.pod.name": "overwritten by the kubelet"}
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		pod.Spec.HostNetwork, pod.Spec.HostPID = false, true
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{Name: "admin", ContainerPort: 8081}}
		pod.Spec.Containers[0].TerminationMessagePath, pod.Spec.Containers[0].TerminationMessagePolicy = "/dev/log", v1.TerminationMessageReadFile
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "log", Image: "fluent"})
	})
	_, ids := kubeletOf(runtime).runPod(t, pod)
	cri.containers[ids[0]].config.Image.Image = "sha256:1"      // the image that the kubelet has pulled for busybox
	cri.containers[ids[1]].config.Image.UserSpecifiedImage = "" // a runtime that does not store it

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
	require.Equal(t, "192.0.2.1", got.Status.HostIP)
	require.Equal(t, "10.0.0.7", got.Status.PodIP)
	require.Equal(t, []v1.PodIP{{IP: "10.0.0.7"}, {IP: "fd00::7"}}, got.Status.PodIPs)
	require.ElementsMatch(t, ids, runningIDs(t, runtime, got))
	require.Equal(t, "fake://"+ids[0], got.Status.ContainerStatuses[0].ContainerID)
	require.False(t, got.Status.ContainerStatuses[0].State.Running.StartedAt.IsZero())
}

// Each case makes one pod with the kubelet k on the runtime cri, and checks what Pods derives from its containers and
// sandboxes: grace periods, states and addresses. A kubelet writes the pod's grace periods into the annotations of each
// container that it creates. In each case Pods must list exactly this pod, with a state of each container.
func TestPodsOfContainersInEachState(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, cri *fake, k kubelet) // makes the pod
		want func(t *testing.T, pod *v1.Pod)          // checks the pod that Pods has returned
	}{
		"grace of 0": {
			make: func(t *testing.T, _ *fake, k kubelet) { k.runPod(t, podWithGrace("web", 0)) },
			want: func(t *testing.T, pod *v1.Pod) { require.EqualValues(t, 0, *pod.Spec.TerminationGracePeriodSeconds) },
		},
		"deleted with a grace period of 7 s": {
			make: func(t *testing.T, _ *fake, k kubelet) {
				grace := int64(7)
				pod := podWithGrace("web", 30)
				sandbox, _ := k.runPod(t, pod)
				pod.DeletionGracePeriodSeconds = &grace
				k.start(t, k.create(t, pod, &v1.Container{Name: "late"}, sandbox, firstRun))
			},
			want: func(t *testing.T, pod *v1.Pod) {
				require.EqualValues(t, 30, *pod.Spec.TerminationGracePeriodSeconds)
				require.EqualValues(t, 7, *pod.DeletionGracePeriodSeconds)
			},
		},
		"invalid annotations": {
			make: func(t *testing.T, cri *fake, k kubelet) {
				_, ids := k.runPod(t, podWithGrace("web", 30))
				for _, name := range []string{"pod.terminationGracePeriod", "container.preStopHandler", "container.ports", "container.restartCount"} {
					cri.containers[ids[0]].config.Annotations["io.kubernetes."+name] = `{"exec":{"command":["/bin/true"]},"sleep":1}`
				}
			},
			want: func(t *testing.T, pod *v1.Pod) {
				require.Nil(t, pod.Spec.TerminationGracePeriodSeconds)
				require.Equal(t, []v1.Container{{Name: "web", Image: "busybox"}}, pod.Spec.Containers)
			},
		},
		"a container was restarted": {
			make: func(t *testing.T, cri *fake, k kubelet) {
				pod := podWithGrace("web", 30)
				sandbox, ids := k.runPod(t, pod)
				cri.exit(ids[0], 1)
				k.start(t, k.create(t, pod, &pod.Spec.Containers[0], sandbox, 1))
			},
			want: func(t *testing.T, pod *v1.Pod) {
				require.Len(t, pod.Spec.Containers, 1)
				require.EqualValues(t, 1, pod.Status.ContainerStatuses[0].RestartCount)
				require.NotNil(t, pod.Status.ContainerStatuses[0].State.Running)
			},
		},
		"two running containers with one name": {
			make: func(t *testing.T, _ *fake, k kubelet) {
				pod := podWithGrace("web", 30)
				sandbox, _ := k.runPod(t, pod)
				k.start(t, k.create(t, pod, &pod.Spec.Containers[0], sandbox, 1))
				k.create(t, pod, &pod.Spec.Containers[0], sandbox, 2)
			},
			want: func(t *testing.T, pod *v1.Pod) {
				require.Len(t, pod.Spec.Containers, 1)
				require.NotNil(t, pod.Status.ContainerStatuses[0].State.Running)
			},
		},
		"a container was created and not started": {
			make: func(t *testing.T, _ *fake, k kubelet) {
				pod := podWithGrace("web", 30)
				k.create(t, pod, &pod.Spec.Containers[0], k.runSandbox(t, pod), firstRun)
			},
			want: func(t *testing.T, pod *v1.Pod) {
				require.Equal(t, v1.PodPending, pod.Status.Phase)
				require.Equal(t, "ContainerCreating", pod.Status.ContainerStatuses[0].State.Waiting.Reason)
			},
		},
		"a container has exited": {
			make: func(t *testing.T, cri *fake, k kubelet) {
				_, ids := k.runPod(t, podWithGrace("web", 30))
				cri.exit(ids[0], 3)
			},
			want: func(t *testing.T, pod *v1.Pod) {
				require.EqualValues(t, 3, pod.Status.ContainerStatuses[0].State.Terminated.ExitCode)
			},
		},
		"state unknown to the runtime": {
			make: func(t *testing.T, cri *fake, k kubelet) {
				sandbox, ids := k.runPod(t, podWithGrace("web", 30))
				cri.sandboxes[sandbox].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
				cri.change(ids[0], func(c *runtimeapi.ContainerStatus) { c.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN })
			},
			want: func(t *testing.T, pod *v1.Pod) {
				require.NotNil(t, pod.Status.ContainerStatuses[0].State.Running, "the container may run")
			},
		},
		"sandboxes of earlier boots": {
			make: func(t *testing.T, cri *fake, k kubelet) {
				for range 8 {
					old := k.runSandbox(t, podWithGrace("web", 30))
					cri.sandboxes[old].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
					delete(cri.configs, old)
				}
				k.runPod(t, podWithGrace("web", 30))
			},
			want: func(t *testing.T, pod *v1.Pod) { require.True(t, pod.Spec.HostNetwork, "from the ready sandbox") },
		},
		"on the host network": {
			make: func(t *testing.T, _ *fake, k kubelet) { k.runPod(t, podWithGrace("web", 30)) },
			want: func(t *testing.T, pod *v1.Pod) {
				require.True(t, pod.Spec.HostNetwork)
				require.Equal(t, "192.0.2.1", pod.Status.PodIP)
			},
		},
		"the network is unknown": {
			make: func(t *testing.T, cri *fake, k kubelet) {
				k.runPod(t, podWithGrace("web", 30))
				cri.fail("PodSandboxStatus", status.Error(codes.Unknown, "no network namespace"))
			},
			want: func(t *testing.T, pod *v1.Pod) { require.Len(t, pod.Spec.Containers, 1) },
		},
		"without the kubelet's labels": {
			make: func(t *testing.T, cri *fake, k kubelet) {
				sandbox, ids := k.runPod(t, podWithGrace("web", 30))
				cri.sandboxes[sandbox].Labels, cri.containers[ids[0]].config.Labels = nil, nil
			},
			want: func(t *testing.T, pod *v1.Pod) { require.Equal(t, "web", pod.Spec.Containers[0].Name) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			cri := newFake()
			runtime := cri.dial(t, criruntime.Options{HostIP: "192.0.2.1"})
			c.make(t, cri, kubeletOf(runtime))
			pods, err := runtime.Pods(t.Context())
			require.NoError(t, err)
			require.Len(t, pods, 1)
			require.Equal(t, "shop/web web-uid", pods[0].Namespace+"/"+pods[0].Name+" "+string(pods[0].UID))
			for _, spec := range pods[0].Spec.Containers {
				hasState := slices.ContainsFunc(pods[0].Status.ContainerStatuses, func(status v1.ContainerStatus) bool { return status.Name == spec.Name })
				require.True(t, hasState, spec.Name)
			}
			c.want(t, pods[0])
		})
	}
}

// Pods omits a pod that has ended: its sandbox is not ready, and its containers have exited. A pod with a ready sandbox has not
// ended, even if it has no containers.
func TestPodsOmitsEndedPods(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	kubelet := kubeletOf(runtime)
	sandbox, ids := kubelet.runPod(t, podWithGrace("ended", 30))
	cri.exit(ids[0], 0)
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
			cri.exit(ids[0], 0) // Pods asks for the ContainerStatus of exited containers
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
	cri.exit(ids[0], 0)
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
	cri.exit(ids["web"], 3)
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
	cri.exit(ids[0], 3)
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
	cri.exit(ids[0], 3)
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
	cri.exit(ids[0], 3)
	cri.fail("ContainerStatus", status.Error(codes.Internal, "exit code is lost"))
	lost := runtime.PodStatus(t.Context(), pod).ContainerStatuses[0].State.Terminated
	require.EqualValues(t, 137, lost.ExitCode)
	require.Equal(t, "ContainerStatusUnknown", lost.Reason)
}
