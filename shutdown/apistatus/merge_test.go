package apistatus_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown"
)

// before is when everything was that a test finds on the API server.
var before = metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))

// running is a pod of the API server that serves.
func running(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID("uid-" + name)},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, PodIP: "10.0.0.7", HostIP: "192.168.0.1", StartTime: &before, QOSClass: v1.PodQOSBurstable,
			Conditions: []v1.PodCondition{
				condition(v1.PodScheduled, v1.ConditionTrue, ""),
				condition("example.com/gate", v1.ConditionTrue, ""),
				condition(v1.PodReady, v1.ConditionTrue, ""),
				condition(v1.ContainersReady, v1.ConditionTrue, ""),
			},
		},
	}
}

func condition(of v1.PodConditionType, status v1.ConditionStatus, reason string) v1.PodCondition {
	return v1.PodCondition{Type: of, Status: status, Reason: reason, LastTransitionTime: before}
}

// ended is a copy of a pod with the final status that a shutdown gives it.
func ended(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	if pod.Status.Phase != v1.PodSucceeded {
		pod.Status.Phase = v1.PodFailed
	}
	pod.Status.Reason, pod.Status.Message = shutdown.TerminatedReason, shutdown.TerminatedMessage
	pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
		Reason: v1.PodReasonTerminationByKubelet, Message: shutdown.TerminatedMessage,
	})
	return pod
}

// sketch is a condition without its times, for comparison.
type sketch struct {
	Type       v1.PodConditionType
	Status     v1.ConditionStatus
	Reason     string
	Generation int64
	Moved      bool // its status has changed since before
}

func sketches(status v1.PodStatus) []sketch {
	var found []sketch
	for _, c := range status.Conditions {
		found = append(found, sketch{c.Type, c.Status, c.Reason, c.ObservedGeneration, !c.LastTransitionTime.Equal(&before)})
	}
	return found
}

// flush gives a pod of the node its final status and returns the cluster.
func flush(t *testing.T, server, pod *v1.Pod) *cluster {
	t.Helper()
	c := newCluster(server)
	require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{pod}))
	return c
}

func TestFinalStatusOfARunningPod(t *testing.T) {
	server := running("web")
	pod := ended(server)
	pod.Generation = 3
	c := flush(t, server, pod)
	got := c.pod(t, "web").Status
	require.Equal(t, v1.PodFailed, got.Phase)
	require.Equal(t, "Terminated", got.Reason)
	require.Equal(t, "Pod was terminated in response to imminent node shutdown.", got.Message)
	require.EqualValues(t, 3, got.ObservedGeneration)
	require.ElementsMatch(t, []sketch{
		{v1.PodScheduled, v1.ConditionTrue, "", 0, false},
		{"example.com/gate", v1.ConditionTrue, "", 0, false},
		{v1.PodReady, v1.ConditionFalse, "PodFailed", 3, true},
		{v1.ContainersReady, v1.ConditionFalse, "PodFailed", 3, true},
		{v1.DisruptionTarget, v1.ConditionTrue, "TerminationByKubelet", 3, true},
	}, sketches(got))
	require.Equal(t, []string{"get", "patch status"}, c.verbs(), "all of it in one update")
	require.Contains(t, c.all("patch status")[0].Body, `"uid":"uid-web"`)
}

func TestFinalStatusKeepsWhatTheNodeDoesNotKnow(t *testing.T) {
	server := running("web")
	pod := ended(&v1.Pod{ObjectMeta: server.ObjectMeta})
	pod.Status.Conditions = append(pod.Status.Conditions,
		condition(v1.PodScheduled, v1.ConditionFalse, "Stale"), condition("example.com/gate", v1.ConditionFalse, "Stale"))
	got := flush(t, server, pod).pod(t, "web").Status
	require.Equal(t, server.Status.PodIP, got.PodIP)
	require.Equal(t, server.Status.HostIP, got.HostIP)
	require.True(t, got.StartTime.Equal(&before))
	require.Equal(t, v1.PodQOSBurstable, got.QOSClass)
	require.Contains(t, sketches(got), sketch{v1.PodScheduled, v1.ConditionTrue, "", 0, false})
	require.Contains(t, sketches(got), sketch{"example.com/gate", v1.ConditionTrue, "", 0, false})
}

func TestFinalPhase(t *testing.T) {
	const own, ours = "Evicted", shutdown.TerminatedReason
	for name, test := range map[string]struct {
		server, node         v1.PodPhase
		serverReason         string
		phase                v1.PodPhase
		reason, ready        string
		disrupted, readyGone bool
	}{
		"running":                  {v1.PodRunning, v1.PodFailed, "", v1.PodFailed, ours, "PodFailed", true, true},
		"pending":                  {v1.PodPending, v1.PodFailed, "", v1.PodFailed, ours, "PodFailed", true, true},
		"succeeded on the node":    {v1.PodRunning, v1.PodSucceeded, "", v1.PodSucceeded, ours, "PodCompleted", true, true},
		"succeeded is kept":        {v1.PodSucceeded, v1.PodFailed, "", v1.PodSucceeded, "", "PodCompleted", false, true},
		"succeeded everywhere":     {v1.PodSucceeded, v1.PodSucceeded, "", v1.PodSucceeded, "", "PodCompleted", false, true},
		"failed for its own":       {v1.PodFailed, v1.PodFailed, own, v1.PodFailed, own, "PodFailed", false, true},
		"failed, reason not known": {v1.PodFailed, v1.PodFailed, "", v1.PodFailed, ours, "PodFailed", true, true},
		"failed is never undone":   {v1.PodFailed, v1.PodSucceeded, "", v1.PodFailed, ours, "PodFailed", true, true},
		"left as it is":            {v1.PodRunning, v1.PodRunning, "", v1.PodRunning, "", "", true, false},
		"no phase is invented":     {v1.PodPending, v1.PodRunning, "", v1.PodPending, "", "", true, false},
		"left, but failed":         {v1.PodFailed, v1.PodRunning, own, v1.PodFailed, own, "PodFailed", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := running("web")
			server.Status.Phase, server.Status.Reason, server.Status.Message = test.server, test.serverReason, test.serverReason
			pod := ended(server)
			pod.Status.Phase = test.node
			got := flush(t, server, pod).pod(t, "web").Status
			require.Equal(t, test.phase, got.Phase)
			require.Equal(t, test.reason, got.Reason)
			switch test.reason {
			case ours:
				require.Equal(t, shutdown.TerminatedMessage, got.Message)
			default:
				require.Equal(t, test.serverReason, got.Message)
			}
			require.Equal(t, test.disrupted, len(sketches(got)) == 5)
			status := v1.ConditionTrue
			if test.readyGone {
				status = v1.ConditionFalse
			}
			for _, of := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
				require.Contains(t, sketches(got), sketch{of, status, test.ready, 0, test.readyGone})
			}
		})
	}
}

func TestFinalConditions(t *testing.T) {
	t.Run("the latest generation that anyone has observed counts", func(t *testing.T) {
		for _, test := range []struct{ server, condition, pod, want int64 }{
			{5, 0, 4, 5},
			{4, 0, 5, 5},
			{0, 5, 4, 5},
			{6, 5, 4, 6},
			{0, 0, 0, 0},
		} {
			server := running("web")
			server.Status.Conditions = append(server.Status.Conditions, condition(v1.DisruptionTarget, v1.ConditionFalse, ""))
			server.Status.ObservedGeneration = test.server
			server.Status.Conditions[4].ObservedGeneration = test.server
			pod := ended(running("web"))
			pod.Generation = test.pod
			pod.Status.Conditions[4].ObservedGeneration = test.condition
			got := flush(t, server, pod).pod(t, "web").Status
			require.EqualValues(t, max(test.server, test.pod), got.ObservedGeneration)
			require.Contains(t, sketches(got), sketch{v1.DisruptionTarget, v1.ConditionTrue, "TerminationByKubelet", test.want, true})
		}
	})
	t.Run("a transition is of the status", func(t *testing.T) {
		server := running("web")
		server.Status.Conditions[2] = condition(v1.PodReady, v1.ConditionFalse, "ContainersNotReady")
		server.Status.Conditions[2].LastProbeTime = before
		got := flush(t, server, ended(server)).pod(t, "web").Status
		require.Contains(t, sketches(got), sketch{v1.PodReady, v1.ConditionFalse, "PodFailed", 0, false})
		require.True(t, got.Conditions[2].LastProbeTime.Equal(&before), "another writer's")
	})
	t.Run("the time of a transition is the node's", func(t *testing.T) {
		server := running("web")
		pod := ended(server)
		at := metav1.NewTime(before.Add(time.Hour))
		pod.Status.Conditions[4].LastTransitionTime = at
		got := flush(t, server, pod).pod(t, "web").Status
		require.True(t, got.Conditions[4].LastTransitionTime.Equal(&at))
	})
	t.Run("a pod without a final phase is not said to be ready again", func(t *testing.T) {
		server := running("web")
		server.Status.Conditions[2] = condition(v1.PodReady, v1.ConditionFalse, "ContainersNotReady")
		pod := running("web")
		pod.Status.Conditions[3] = condition(v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady")
		got := flush(t, server, pod).pod(t, "web").Status
		require.Contains(t, sketches(got), sketch{v1.PodReady, v1.ConditionFalse, "ContainersNotReady", 0, false})
		require.Contains(t, sketches(got), sketch{v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady", 0, false})
	})
	t.Run("a sandbox that is gone", func(t *testing.T) {
		server := running("web")
		server.Status.Conditions = append(server.Status.Conditions, condition(v1.PodReadyToStartContainers, v1.ConditionTrue, ""))
		pod := ended(running("web"))
		pod.Status.Conditions = append(pod.Status.Conditions, condition(v1.PodReadyToStartContainers, v1.ConditionFalse, ""))
		got := flush(t, server, pod).pod(t, "web").Status
		require.Contains(t, sketches(got), sketch{v1.PodReadyToStartContainers, v1.ConditionFalse, "", 0, false})
	})
}

func container(name string, restarts, exit int32) v1.ContainerStatus {
	status := v1.ContainerStatus{Name: name, RestartCount: restarts, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	if exit >= 0 {
		status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: exit}}
	}
	return status
}

func TestFinalContainers(t *testing.T) {
	const runs = -1
	for name, test := range map[string]struct{ server, node, want []v1.ContainerStatus }{
		"the node's word": {
			[]v1.ContainerStatus{container("a", 0, runs), container("b", 0, runs)},
			[]v1.ContainerStatus{container("b", 0, 143), container("a", 0, 0)},
			[]v1.ContainerStatus{container("a", 0, 0), container("b", 0, 143)},
		},
		"not known to the node": {
			[]v1.ContainerStatus{container("a", 0, runs)},
			nil,
			[]v1.ContainerStatus{container("a", 0, runs)},
		},
		"not known to the server": {
			nil,
			[]v1.ContainerStatus{container("a", 0, 1)},
			[]v1.ContainerStatus{container("a", 0, 1)},
		},
		"ended since": {
			[]v1.ContainerStatus{container("a", 2, 137)},
			[]v1.ContainerStatus{container("a", 2, runs)},
			[]v1.ContainerStatus{container("a", 2, 137)},
		},
		"started again since": {
			[]v1.ContainerStatus{container("a", 3, runs)},
			[]v1.ContainerStatus{container("a", 2, 1)},
			[]v1.ContainerStatus{container("a", 3, runs)},
		},
		"started again on the node": {
			[]v1.ContainerStatus{container("a", 2, 1)},
			[]v1.ContainerStatus{container("a", 3, runs)},
			[]v1.ContainerStatus{container("a", 3, runs)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, pod := running("web"), running("web")
			server.Status.ContainerStatuses, server.Status.InitContainerStatuses = test.server, test.server
			pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = test.node, test.node
			got := flush(t, server, ended(pod)).pod(t, "web").Status
			require.Equal(t, test.want, got.ContainerStatuses)
			require.Equal(t, test.want, got.InitContainerStatuses)
		})
	}
}

func TestContainersOfAPodWithoutAFinalPhase(t *testing.T) {
	server, pod := running("web"), running("web")
	server.Status.ContainerStatuses = []v1.ContainerStatus{container("a", 0, -1)}
	pod.Status.ContainerStatuses = []v1.ContainerStatus{container("a", 0, 0)}
	got := flush(t, server, pod).pod(t, "web").Status
	require.Equal(t, v1.PodRunning, got.Phase)
	require.Equal(t, pod.Status.ContainerStatuses, got.ContainerStatuses)
}

func TestAFinalStatusThatIsThereIsNotWrittenAgain(t *testing.T) {
	c := flush(t, running("web"), ended(running("web")))
	c.reset()
	require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{ended(running("web"))}))
	require.Equal(t, []string{"get"}, c.verbs())
}

func TestThePodsOfTheNodeAreNotWrittenTo(t *testing.T) {
	pod := ended(running("web"))
	pod.Generation = 3
	was := pod.DeepCopy()
	flush(t, running("web"), pod)
	require.Equal(t, was, pod)
}
