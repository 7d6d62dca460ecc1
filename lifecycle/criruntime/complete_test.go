package criruntime_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// The pod of an informer is completed by what runs, and is not changed.
func TestCompleteWithThePodOfAnInformer(t *testing.T) {
	always, priority := v1.ContainerRestartPolicyAlways, int32(2000)
	informed := onePod("web", 30, func(pod *v1.Pod) {
		pod.Spec.Priority = &priority
		pod.Spec.InitContainers = []v1.Container{{Name: "migrate"}, {Name: "proxy", RestartPolicy: &always}}
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "waits"}, v1.Container{Name: "gone"})
		pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
		running := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}
		ended := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed"}}
		pod.Status = v1.PodStatus{
			Phase: v1.PodPending, PodIP: "10.0.0.1",
			Conditions:            []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
			InitContainerStatuses: []v1.ContainerStatus{{Name: "migrate", State: ended}},
			ContainerStatuses:     []v1.ContainerStatus{{Name: "gone", ContainerID: "fake://old", State: running}},
		}
	})
	s := newFake()
	runtime := s.dial(t, criruntime.Options{Complete: func(*v1.Pod) *v1.Pod { return informed }})
	kubelet := kubeletOf(runtime)
	pod := onePod("web", 30)
	sandbox, ids := kubelet.runPod(t, pod)
	for _, name := range []string{"proxy", "debug", "unlisted"} {
		id := kubelet.create(t, pod, &v1.Container{Name: name}, sandbox, 0)
		kubelet.start(t, id)
		ids = append(ids, id)
	}
	before := informed.DeepCopy()

	pods, err := runtime.Pods(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, informed)
	got := pods[0]
	require.Equal(t, informed.Spec, got.Spec)
	require.Equal(t, v1.PodRunning, got.Status.Phase)
	require.Equal(t, "10.0.0.1", got.Status.PodIP)
	require.Len(t, got.Status.Conditions, 1)
	states := map[string]string{}
	for _, list := range [][]v1.ContainerStatus{got.Status.InitContainerStatuses, got.Status.ContainerStatuses, got.Status.EphemeralContainerStatuses} {
		for _, s := range list {
			states[s.Name] = map[bool]string{s.State.Running != nil: "running", s.State.Waiting != nil: "waiting", s.State.Terminated != nil: "ended"}[true]
		}
	}
	require.Equal(t, map[string]string{
		"migrate": "ended", "proxy": "running", "web": "running", "waits": "waiting", "gone": "waiting", "debug": "running", "unlisted": "running",
	}, states)
	require.ElementsMatch(t, []lifecycle.Container{
		{Name: "web", ID: ids[0]}, {Name: "proxy", ID: ids[1]}, {Name: "debug", ID: ids[2]}, {Name: "unlisted", ID: ids[3]},
	}, lifecycle.ContainersOf(got))
}

func TestCompleteChangesThePodOrLeavesItOut(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{Complete: func(pod *v1.Pod) *v1.Pod {
		if pod.Name == "system" {
			return nil
		}
		priority := int32(7)
		pod.Spec.Priority = &priority
		return pod
	}})
	kubeletOf(runtime).runPod(t, onePod("system", 30))
	_, ids := kubeletOf(runtime).runPod(t, onePod("web", 30))
	pods, err := runtime.Pods(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 1)
	require.EqualValues(t, 7, *pods[0].Spec.Priority)
	require.Equal(t, []lifecycle.Container{{Name: "web", ID: ids[0]}}, lifecycle.ContainersOf(pods[0]))
}

func TestPodStatus(t *testing.T) {
	s := newFake()
	runtime := s.dial(t, criruntime.Options{})
	pod := onePod("web", 30, func(pod *v1.Pod) { pod.Status.QOSClass = v1.PodQOSBurstable })
	sandbox, ids := kubeletOf(runtime).runPod(t, pod)
	s.exit(ids[0], 3)
	require.NoError(t, runtime.StopPodSandbox(t.Context(), pod))
	got := runtime.PodStatus(t.Context(), pod)
	require.Equal(t, v1.PodQOSBurstable, got.QOSClass)
	require.EqualValues(t, 3, got.ContainerStatuses[0].State.Terminated.ExitCode)

	require.Nil(t, runtime.PodStatus(t.Context(), onePod("unknown", 30)))
	delete(s.sandboxes, sandbox)
	delete(s.containers, ids[0])
	require.Nil(t, runtime.PodStatus(t.Context(), pod))
	require.NoError(t, runtime.Close())
	require.Nil(t, runtime.PodStatus(t.Context(), pod), "the runtime does not answer")
}
