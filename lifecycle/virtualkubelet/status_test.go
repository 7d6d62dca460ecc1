//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// The regular container of a deleted pod ends first, after 3 s. Then the sidecars end in reverse order: log after another 2 s,
// and net at once. No status is sent until all have ended: virtual-kubelet would remove the pod from the API server while
// the sidecars run.
func TestNoStatusIsSentUntilSidecarsHaveEnded(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 3 * second}
		b.rt.scripts["log"] = lifecycletest.Script{ExitAfterTerm: 2 * second}
		pod := podOf(container("app"))
		pod.Spec.InitContainers = []v1.Container{sidecar("net"), sidecar("log")}
		b.create(pod)
		b.deleteWithGrace(pod, 30)
		wait(4 * second)
		require.Zero(b, b.lastNotification().at, "the status of the start is the last one")
		require.NotNil(b, b.lastStatus().ContainerStatuses[0].State.Running)

		wait(time.Minute)
		require.Equal(b, []stop{
			{id: "uid/app", timeout: 30, at: 0},
			{id: "uid/log", timeout: 30 - 3, at: 3 * second},
			{id: "uid/net", timeout: 30 - 3 - 2, at: (3 + 2) * second},
		}, b.stops())
		for name, ended := range map[string]time.Duration{"app": 3 * second, "log": 5 * second, "net": 5 * second} {
			require.True(b, terminatedState(b, b.lastStatus(), name).FinishedAt.Time.Equal(b.began.Add(ended)), name)
		}
	})
}

// A pod is deleted at 5 s, while its sidecar runs and the start of its regular container lasts until 7 s. StatusChanged sends
// no status then: no regular container is running, so virtual-kubelet would remove the pod from the API server. The final
// status comes when the sidecar, which is stopped after the regular container, has taken 2 s to exit.
func TestNoStatusIsSentWhileAContainerOfADeletedPodStarts(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.beforeStart = func(_ context.Context, name string) error {
			if name == "app" {
				<-time.After(7 * second)
			}
			return nil
		}
		b.rt.scripts["proxy"] = lifecycletest.Script{ExitAfterTerm: 2 * second}
		pod := podOf(container("app"))
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
		b.create(pod)
		wait(5 * second)
		b.deleteWithGrace(pod, 30)
		b.StatusChanged(pod)
		wait(second)
		require.Zero(b, b.lastNotification().at, "the last status is that of 0 s")
		wait(time.Minute)
		require.Equal(b, (7+2)*second, b.lastNotification().at)
	})
}

// A pod with three containers is deleted with a grace period of 5 s. One ends at once with exit code 0, one at once with 7,
// and one after 5 s by SIGKILL. The final status has what a kubelet would write, and keeps the conditions that others have
// set.
func TestFinalStatus(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["stubborn"] = lifecycletest.Script{IgnoreTerm: true}
		b.rt.exitCodes["bad"] = 7
		pod := podOf(container("good"), container("bad"), container("stubborn"))
		pod.Generation = 4
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}
		b.create(pod)
		b.deleteWithGrace(pod, 5)
		wait(5 * second)
		status := b.lastStatus()
		start, end := metav1.NewTime(b.began), metav1.NewTime(b.began.Add(5*second))
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Equal(b, int64(4), status.ObservedGeneration)
		require.Equal(b, start, *status.StartTime)
		require.Equal(b, v1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: start, FinishedAt: start, ContainerID: "virtual-kubelet://uid/good",
		}, terminatedState(b, status, "good"))
		require.Equal(b, v1.ContainerStateTerminated{
			ExitCode: 7, Reason: "Error", StartedAt: start, FinishedAt: start, ContainerID: "virtual-kubelet://uid/bad",
		}, terminatedState(b, status, "bad"))
		require.Equal(b, v1.ContainerStateTerminated{
			ExitCode: 137, Reason: "Error", StartedAt: start, FinishedAt: end, ContainerID: "virtual-kubelet://uid/stubborn",
		}, terminatedState(b, status, "stubborn"))
		require.Equal(b, v1.ConditionTrue, conditionOf(b, status, v1.PodScheduled).Status)
		// The pod is not ready once its first container has ended, at 0 s. The provider notes the change when it computes the next
		// status, at 5 s at the latest: while a pod terminates, it sends no status but the final one.
		ready := conditionOf(b, status, v1.PodReady)
		require.WithinRange(b, ready.LastTransitionTime.Time, start.Time, end.Time)
		ready.LastTransitionTime = metav1.Time{}
		require.Equal(b, v1.PodCondition{
			Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "ContainersNotReady", ObservedGeneration: 4,
		}, ready)
	})
}

// The regular containers of a pod exit on their own after 1 and 9 s. The pod has then completed with their
// exit codes, and its sidecar, whose exit code does not count, is stopped.
func TestAPodThatCompletes(t *testing.T) {
	for exitCode, phase := range map[int32]v1.PodPhase{0: v1.PodSucceeded, 1: v1.PodFailed} {
		t.Run(string(phase), func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: 9 * second}
				b.rt.scripts["short"] = lifecycletest.Script{ExitAfter: second}
				b.rt.exitCodes["app"], b.rt.exitCodes["proxy"] = exitCode, 99
				pod := podOf(container("app"), container("short"))
				pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
				b.create(pod)
				wait(2 * second)
				require.Equal(b, second, b.lastNotification().at)
				require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
				wait(7 * second)
				require.Equal(b, []stop{{id: "uid/proxy", timeout: 30, at: 9 * second}}, b.stops())
				require.Equal(b, phase, b.lastStatus().Phase)
				require.Empty(b, b.podsForShutdown())
			})
		})
	}
}

// The caller changes a pod that it has passed to CreatePod, and pods that GetPod has returned. The provider has copies, so its
// pod stays as it was. Only UpdatePod changes it.
func TestPodsAreCopied(t *testing.T) {
	inBubble(t, func(b *testbed) {
		pod := podOf(container("app"))
		pod.Labels = map[string]string{"a": "b"}
		b.create(pod)
		pod.Labels["a"] = "changed"
		require.Equal(b, "b", b.currentPod().Labels["a"])

		got := b.currentPod()
		got.Labels["a"], got.Status.ContainerStatuses[0].State.Running, got.Status.StartTime.Time = "changed", nil, time.Time{}
		pods, err := b.GetPods(b.Context())
		require.NoError(b, err)
		require.Equal(b, "b", pods[0].Labels["a"])
		require.NotNil(b, pods[0].Status.ContainerStatuses[0].State.Running)
		require.True(b, pods[0].Status.StartTime.Time.Equal(b.began))

		pod.Labels["a"] = "updated"
		require.NoError(b, b.UpdatePod(b.Context(), pod))
		require.Equal(b, "updated", b.podsForShutdown()[0].Labels["a"])
	})
}

// Options.Status sets the podIP and the annotation "was" once the agent knows the IP, at 1 s. StatusChanged sends them. Later
// Options.Status sets nothing any more, but the final status still has the annotation.
func TestStatusChangedSendsTheFieldsOfOptionsStatus(t *testing.T) {
	var ip atomic.Value // a string: the IP that the agent knows; none or "": it knows none
	inBubble(t, func(b *testbed) {
		pod := podOf(container("app"))
		b.create(pod)
		wait(second)
		require.Empty(b, b.lastStatus().PodIP)

		ip.Store("10.0.0.7")
		b.StatusChanged(pod)
		synctest.Wait()
		require.Equal(b, "10.0.0.7", b.lastStatus().PodIP)
		require.Equal(b, "10.0.0.7", b.currentPod().Status.PodIP)

		ip.Store("")
		b.StatusChanged(pod)
		b.deleteWithGrace(pod, 10)
		wait(20 * second)
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Equal(b, "10.0.0.7", b.lastNotification().pod.Annotations["was"])
	}, func(o *virtualkubelet.Options) {
		o.Status = func(pod *v1.Pod) {
			if known, _ := ip.Load().(string); known != "" {
				pod.Status.PodIP, pod.Annotations = known, map[string]string{"was": known}
			}
		}
	})
}
