//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// These are the scenarios of virtual-kubelet's own test node/lifecycle_test.go, under the same names, with a real API server.
// The scenarios with a provider that is polled are omitted, because a Provider is always a PodNotifier.
func TestUpstreamLifecycleScenarios(t *testing.T) {
	for name, scenario := range map[string]func(*testing.T, ...func(*virtualkubelet.Options)){
		"createStartDeleteScenario":                          createStartDelete,
		"createStartDeleteScenarioWithDeletionErrorNotFound": deletionErrorNotFound,
		"createStartDeleteScenarioWithDeletionRandomError":   deletionRandomError,
		"danglingPodScenario":                                danglingPod,
		"testDanglingPodScenarioWithDeletionTimestamp":       danglingPodWithDeletionTimestamp,
		"failedPodScenario":                                  terminalPod(v1.PodFailed),
		"succeededPodScenario":                               terminalPod(v1.PodSucceeded),
		"updatePodWhileRunningScenario":                      updatePodWhileRunning,
	} {
		t.Run(name, func(t *testing.T) { scenario(t) })
		t.Run(name+"/whole pods", func(t *testing.T) { scenario(t, onFakePodRuntime(newFakePodRuntime(tick))) })
	}
}

// A deleted pod gets its final status and is then removed.
func createStartDelete(t *testing.T, kind ...func(*virtualkubelet.Options)) {
	c := prepareCluster(t, kind...)
	created := c.create(podOf(container("app")))
	c.start()
	c.awaitPod(func(now *v1.Pod) bool { return now.Status.Phase == v1.PodRunning })
	seen := c.watch(created)
	c.kubectlDeleteWithGrace(3)
	final := c.await(seen, func(event watch.Event) bool { return event.Object.(*v1.Pod).Status.Phase == v1.PodSucceeded })
	require.Equal(t, "Completed", terminatedState(t, final.Status, "app").Reason)
	require.NotNil(t, final.DeletionTimestamp)
	c.await(seen, func(event watch.Event) bool { return event.Type == watch.Deleted })
	c.awaitGone()
}

// The API server has a deleted pod as running, but the restarted agent has not adopted it, so DeletePod returns NotFound.
// virtual-kubelet then removes the pod from the API server.
func deletionErrorNotFound(t *testing.T, kind ...func(*virtualkubelet.Options)) {
	c := prepareCluster(t, kind...)
	created := c.create(podOf(container("app")))
	created.Status = v1.PodStatus{
		Phase:             v1.PodRunning,
		ContainerStatuses: []v1.ContainerStatus{{Name: "app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}},
	}
	_, err := c.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.kubectlDeleteWithGrace(1)
	deleted, err := c.Get(t.Context(), "pod", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, errdefs.IsNotFound(c.provider.DeletePod(t.Context(), deleted)))
	c.start()
	c.awaitGone()
	require.Contains(t, c.recordedEvents(), "ProviderDeleteFailed")
	require.Empty(t, c.rt.Stops())
}

// breakableRuntime is a runtime whose StopContainer returns errBroken while broken is set.
type breakableRuntime struct {
	*scriptedRuntime

	broken *atomic.Bool
}

var errBroken = errors.New("the runtime is broken")

func (b breakableRuntime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	if b.broken.Load() {
		return errBroken
	}
	return b.Runtime.StopContainer(ctx, id, timeoutSeconds)
}

// A deleted pod that cannot be stopped stays on the API server: virtual-kubelet calls DeletePod until the
// runtime has recovered.
func deletionRandomError(t *testing.T, kind ...func(*virtualkubelet.Options)) {
	var broken atomic.Bool
	broken.Store(true)
	breakable := func(o *virtualkubelet.Options) {
		o.Runtime = breakableRuntime{o.Runtime.(*scriptedRuntime), &broken}
		o.Terminator.GiveUpAfter = time.Millisecond // so that each termination soon fails
	}
	c := prepareCluster(t, append([]func(*virtualkubelet.Options){breakable}, kind...)...)
	pod := c.create(podOf(container("app")))
	c.start()
	c.awaitPod(func(now *v1.Pod) bool { return now.Status.Phase == v1.PodRunning })
	_, err := c.provider.KillPod(t.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(1))})
	require.Error(t, err, "the first termination")
	c.kubectlDeleteWithGrace(1)
	require.Eventually(t, func() bool { return strings.Count(c.recordedEvents(), "ProviderDeleteFailed") >= 2 }, waitAtMost, tick)
	c.awaitPod(func(now *v1.Pod) bool { return now.DeletionTimestamp != nil && now.Status.Phase == v1.PodRunning })
	broken.Store(false)
	c.awaitGone()
}

// A pod that was removed from the API server while the agent was not running is terminated.
func danglingPod(t *testing.T, kind ...func(*virtualkubelet.Options)) {
	c := prepareCluster(t, kind...)
	require.NoError(t, c.provider.CreatePod(t.Context(), podOf(container("app"))))
	c.start()
	c.awaitStopWithTimeout("app", 30)
	c.awaitGone()
}

// A pod that was deleted while the agent was not running is terminated and removed from the API server.
func danglingPodWithDeletionTimestamp(t *testing.T, kind ...func(*virtualkubelet.Options)) {
	c := prepareCluster(t, kind...)
	created := c.create(podOf(container("app")))
	require.NoError(t, c.provider.CreatePod(t.Context(), created))
	c.kubectlDeleteWithGrace(3)
	c.start()
	c.awaitGone()
	require.Len(t, c.rt.Exits(), 1)
}

// A pod that has ended before the agent started is left unchanged.
func terminalPod(phase v1.PodPhase) func(*testing.T, ...func(*virtualkubelet.Options)) {
	return func(t *testing.T, kind ...func(*virtualkubelet.Options)) {
		c := prepareCluster(t, kind...)
		created := c.create(podOf(container("app")))
		created.Status.Phase = phase
		ended, err := c.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		require.NoError(t, err)
		c.start()
		other := podOf(container("app"))
		other.Name = "other" // once it runs, the controller has handled both pods
		c.create(other)
		require.Eventually(t, func() bool {
			now, err := c.Get(t.Context(), "other", metav1.GetOptions{})
			return err == nil && now.Status.Phase == v1.PodRunning
		}, waitAtMost, tick)
		now, err := c.Get(t.Context(), "pod", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, ended, now)
		_, err = c.provider.GetPod(t.Context(), "ns", "pod")
		require.True(t, errdefs.IsNotFound(err))
	}
}

// The provider receives a change of the spec, and the container keeps running.
func updatePodWhileRunning(t *testing.T, kind ...func(*virtualkubelet.Options)) {
	c := newCluster(t, 30, kind...) // the runtime kills a container at once if it is stopped with a timeout of 30 s or less
	c.createRunning(podOf(container("app")))
	pod, err := c.Get(t.Context(), "pod", metav1.GetOptions{})
	require.NoError(t, err)
	pod.Spec.ActiveDeadlineSeconds = ptr.To(int64(300))
	_, err = c.Update(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pod, err := c.provider.GetPod(t.Context(), "ns", "pod")
		return err == nil && pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds == 300
	}, waitAtMost, tick)
	require.Empty(t, c.rt.Exits())
}

// watch watches a pod from a version on.
func (c *cluster) watch(pod *v1.Pod) watch.Interface {
	c.Helper()
	watching, err := c.Watch(c.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion})
	require.NoError(c, err)
	c.Cleanup(watching.Stop)
	return watching
}

// await returns the pod of the first event that meets a condition.
func (c *cluster) await(seen watch.Interface, condition func(watch.Event) bool) *v1.Pod {
	c.Helper()
	late := time.After(waitAtMost)
	for {
		select {
		case event := <-seen.ResultChan():
			if condition(event) {
				return event.Object.(*v1.Pod)
			}
		case <-late:
			require.Fail(c, "the event was not seen")
		}
	}
}

// recordedEvents returns the events that virtual-kubelet has recorded so far.
func (c *cluster) recordedEvents() string {
	for {
		select {
		case event := <-c.events.Events:
			c.log.WriteString(event + "\n")
		default:
			return c.log.String()
		}
	}
}
