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

// A pod has a container in each state, and another pod has its name but not its UID. Running lists the pod's created,
// running and unknown containers, and no others. Without a UID, it lists those of both pods, by namespace and name. The
// result is the same whether the runtime streams its lists or not.
func TestRunning(t *testing.T) {
	for name, streams := range map[string]bool{"in one message": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			s := newFake()
			s.streams = streams
			runtime := s.dial(t, criruntime.Options{})
			kubelet := kubeletOf(runtime)
			pod := onePod("web", 30, func(pod *v1.Pod) {
				pod.Spec.Containers = []v1.Container{{Name: "main"}, {Name: "log"}, {Name: "done"}}
			})
			sandbox, ids := kubelet.runPod(t, pod)
			created := kubelet.create(t, pod, &v1.Container{Name: "next"}, sandbox, firstRun)
			s.change(ids[1], func(c *runtimeapi.ContainerStatus) { c.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN })
			s.exit(ids[2], 0)
			other := onePod("web", 30)
			other.UID = "another"
			_, others := kubelet.runPod(t, other)

			got, err := runtime.Running(t.Context(), pod)
			require.NoError(t, err)
			at := func(id string) time.Time { return time.Unix(0, s.containers[id].status.GetCreatedAt()) }
			require.ElementsMatch(t, []lifecycle.Container{
				{Name: "main", ID: ids[0], Began: at(ids[0])}, {Name: "log", ID: ids[1], Began: at(ids[1])}, {Name: "next", ID: created, Began: at(created)},
			}, got)
			require.Equal(t, others, runningIDs(t, runtime, other))
			require.Empty(t, runningIDs(t, runtime, onePod("unknown", 30)))
			pods, err := runtime.Pods(t.Context())
			require.NoError(t, err)
			require.Len(t, pods, 2)
			pod.UID = ""
			clear(s.sandboxes) // now only their labels say to which pod the containers belong
			require.ElementsMatch(t, []string{ids[0], ids[1], created, others[0]}, runningIDs(t, runtime, pod), "by namespace and name")
			require.Equal(t, streams, runtime.Streams())
			require.Equal(t, streams, len(s.callsOf("ListContainers")) == 0, "the calls that do not stream")
		})
	}
}

// A sandbox has a container with a kubelet's labels and one without (foreign). As long as the labelled one exists, even
// exited, foreign is ignored. When no container has the labels, Running finds both by their sandbox, and lists foreign,
// because the other has exited.
func TestRunningFindsUnlabelledContainersByTheirSandbox(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	kubelet, pod := kubeletOf(runtime), onePod("web", 30)
	sandbox, ids := kubelet.runPod(t, pod)
	foreign := kubelet.create(t, pod, &v1.Container{Name: "foreign"}, sandbox, firstRun)
	s.containers[foreign].config.Labels = nil
	require.Equal(t, ids, runningIDs(t, runtime, pod))
	s.exit(ids[0], 0)
	require.Empty(t, runningIDs(t, runtime, pod))
	s.containers[ids[0]].config.Labels = nil
	require.Equal(t, []string{foreign}, runningIDs(t, runtime, pod))
	pod.UID = ""
	require.Equal(t, []string{foreign}, runningIDs(t, runtime, pod))
}

// Running fails if one of the runtime's lists fails: that of the containers, that of the sandboxes, or a stream that breaks
// off. It never returns an empty or incomplete list, because an empty list would mean that the pod has ended.
func TestRunningFailsWithTheRuntime(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	kubelet, pod := kubeletOf(runtime), onePod("web", 30)
	_, ids := kubelet.runPod(t, pod)
	away := status.Error(codes.Unavailable, "away")
	s.fail("ListContainers", away)
	_, err := runtime.Running(t.Context(), pod)
	require.EqualError(t, err, "failed to list the containers of pod shop/web: rpc error: code = Unavailable desc = away")
	s.succeed("ListContainers")
	s.containers[ids[0]].config.Labels = nil
	s.fail("ListPodSandbox", away)
	_, err = runtime.Running(t.Context(), pod)
	require.ErrorContains(t, err, "away")

	s.succeed("ListPodSandbox")
	s.streams = true
	streaming := s.dial(t, criruntime.Options{})
	s.fail("StreamContainers", status.Error(codes.DeadlineExceeded, "breaks off"))
	_, err = streaming.Running(t.Context(), pod)
	require.ErrorContains(t, err, "breaks off")
	require.True(t, streaming.Streams())
}

// A static pod has the UID "hash" in the runtime. An informer has its mirror pod, with another UID and "hash" in an annotation. The
// containers of the mirror pod are those of the static pod, whether they have a kubelet's labels or not: an empty list would
// mean that the static pod has ended.
func TestAMirrorPodHasTheContainersOfItsStaticPod(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	kubelet := kubeletOf(runtime)
	static := onePod("etcd", 30, func(pod *v1.Pod) { pod.UID = "hash" })
	_, ids := kubelet.runPod(t, static)
	mirror := onePod("etcd", 30, func(pod *v1.Pod) {
		pod.UID, pod.Annotations = "mirror", map[string]string{v1.MirrorPodAnnotationKey: "hash"}
	})
	require.Equal(t, ids, runningIDs(t, runtime, mirror))
	require.NotNil(t, runtime.PodStatus(t.Context(), mirror))
	s.containers[ids[0]].config.Labels = nil
	require.Equal(t, ids, runningIDs(t, runtime, mirror))
}
