package criruntime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// runningIDs returns the IDs that Running lists for a pod.
func runningIDs(t testing.TB, runtime *criruntime.Runtime, pod *v1.Pod) (ids []string) {
	t.Helper()
	running, err := runtime.Running(t.Context(), pod)
	require.NoError(t, err)
	for _, c := range running {
		ids = append(ids, c.ID)
	}
	return ids
}

// A pod has a container in each state. Running lists the created, running and unknown ones, because they may run. The result is
// the same whether the runtime streams its lists or not.
func TestRunning(t *testing.T) {
	for name, streams := range map[string]bool{"in one message": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			cri := newFake()
			cri.streams = streams
			runtime := cri.dial(t, criruntime.Options{})
			kubelet := kubeletOf(runtime)
			pod := podWithGrace("web", 30, func(pod *v1.Pod) {
				pod.Spec.Containers = []v1.Container{{Name: "running"}, {Name: "unknown"}, {Name: "exited"}}
			})
			sandbox, ids := kubelet.runPod(t, pod)
			running, unknown, exited := ids[0], ids[1], ids[2]
			created := kubelet.create(t, pod, &v1.Container{Name: "created"}, sandbox, firstRun)
			cri.change(unknown, func(c *runtimeapi.ContainerStatus) { c.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN })
			cri.exitWith(exited, 0)

			got, err := runtime.Running(t.Context(), pod)
			require.NoError(t, err)
			createdAt := func(id string) time.Time { return time.Unix(0, cri.containers[id].status.GetCreatedAt()) }
			require.ElementsMatch(t, []lifecycle.Container{
				{Name: "created", ID: created, Began: createdAt(created)},
				{Name: "running", ID: running, Began: createdAt(running)},
				{Name: "unknown", ID: unknown, Began: createdAt(unknown)},
			}, got)
			require.Equal(t, streams, runtime.UsesStreaming())
			require.Equal(t, streams, len(cri.callsOf("ListContainers")) == 0, "the method that does not stream")
		})
	}
}

// Two pods have the same name. Running lists only the containers of the pod with the UID. Without a UID it lists those of both.
func TestRunningIdentifiesAPodByItsUID(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	pod, other := podWithGrace("web", 30), podWithGrace("web", 30)
	other.UID = "another"
	_, ids := kubeletOf(runtime).runPod(t, pod)
	_, otherIDs := kubeletOf(runtime).runPod(t, other)
	require.Equal(t, ids, runningIDs(t, runtime, pod))
	require.Equal(t, otherIDs, runningIDs(t, runtime, other))
	require.Empty(t, runningIDs(t, runtime, podWithGrace("unknown", 30)))
	pods, err := runtime.Pods(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 2)

	pod.UID = ""
	clear(cri.sandboxes) // now only their labels say to which pod the containers belong
	require.ElementsMatch(t, append(ids, otherIDs...), runningIDs(t, runtime, pod))
}

// A sandbox has a container with a kubelet's labels and one without. As long as the labelled one exists, even exited, the other
// one is ignored. When no container has the labels, Running finds both by their sandbox, and lists the one that runs.
func TestRunningFindsUnlabelledContainersByTheirSandbox(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	kubelet, pod := kubeletOf(runtime), podWithGrace("web", 30)
	sandbox, ids := kubelet.runPod(t, pod)
	labelled, unlabelled := ids[0], kubelet.create(t, pod, &v1.Container{Name: "other"}, sandbox, firstRun)
	cri.containers[unlabelled].config.Labels = nil
	require.Equal(t, []string{labelled}, runningIDs(t, runtime, pod))
	cri.exitWith(labelled, 0)
	require.Empty(t, runningIDs(t, runtime, pod))

	cri.containers[labelled].config.Labels = nil
	require.Equal(t, []string{unlabelled}, runningIDs(t, runtime, pod))
	pod.UID = "" // the sandbox is then found by namespace and name
	require.Equal(t, []string{unlabelled}, runningIDs(t, runtime, pod))
}

// Running fails if one of the runtime's lists fails, that of the containers or that of the sandboxes. It never returns an
// incomplete list, because an empty list would mean that the pod has ended.
func TestRunningFailsWithTheRuntime(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	pod, away := podWithGrace("web", 30), status.Error(codes.Unavailable, "away")
	_, ids := kubeletOf(runtime).runPod(t, pod)
	cri.fail("ListContainers", away)
	_, err := runtime.Running(t.Context(), pod)
	require.EqualError(t, err, "failed to list the containers of pod shop/web: rpc error: code = Unavailable desc = away")

	cri.succeed("ListContainers")
	cri.containers[ids[0]].config.Labels = nil // so that Running lists the sandboxes
	cri.fail("ListPodSandbox", away)
	_, err = runtime.Running(t.Context(), pod)
	require.ErrorContains(t, err, "away")
}

// A stream of the runtime's containers breaks off after the first. Running fails, and does not return the incomplete list.
func TestRunningFailsIfAStreamBreaksOff(t *testing.T) {
	cri := newFake()
	cri.streams = true
	runtime := cri.dial(t, criruntime.Options{})
	pod := podWithGrace("web", 30)
	kubeletOf(runtime).runPod(t, pod)
	cri.fail("StreamContainers", status.Error(codes.DeadlineExceeded, "breaks off"))
	_, err := runtime.Running(t.Context(), pod)
	require.ErrorContains(t, err, "breaks off")
	require.True(t, runtime.UsesStreaming(), "the unary method is not called instead")
}

// A static pod has the UID "hash" in the runtime. Its mirror pod on the API server has another UID, and "hash" in an annotation.
// The containers of the mirror pod are those of the static pod, whether they have a kubelet's labels or not.
func TestAMirrorPodHasTheContainersOfItsStaticPod(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	static := podWithGrace("etcd", 30, func(pod *v1.Pod) { pod.UID = "hash" })
	_, ids := kubeletOf(runtime).runPod(t, static)
	mirror := podWithGrace("etcd", 30, func(pod *v1.Pod) {
		pod.UID, pod.Annotations = "mirror", map[string]string{v1.MirrorPodAnnotationKey: "hash"}
	})
	require.Equal(t, ids, runningIDs(t, runtime, mirror))
	require.NotNil(t, runtime.PodStatus(t.Context(), mirror))
	cri.containers[ids[0]].config.Labels = nil
	require.Equal(t, ids, runningIDs(t, runtime, mirror))
}
