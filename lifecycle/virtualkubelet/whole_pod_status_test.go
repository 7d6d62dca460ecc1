//go:build go1.25

package virtualkubelet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// reportPhase makes Statuses report this phase for each pod, and no containers.
func (p *fakePodRuntime) reportPhase(phase v1.PodPhase) { p.reportStates(phase, nil) }

// reportStates makes Statuses report this phase for each pod, and these states of its containers, by name.
func (p *fakePodRuntime) reportStates(phase v1.PodPhase, states map[string]v1.ContainerState) {
	status := &v1.PodStatus{Phase: phase}
	for name, state := range states {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: name, State: state})
	}
	p.change(func() { p.reported = status })
}

// withCommandRunner makes a fakePodRuntime a lifecycle.CommandRunner, so that the provider runs the hooks of its pods. The hooks are
// sleeps, which need no command: its Runtime is nil.
func withCommandRunner(o *virtualkubelet.Options) {
	o.Pods = struct {
		*fakePodRuntime
		*lifecycletest.Runtime
	}{o.Pods.(*fakePodRuntime), nil}
}

// The list at 5 s has a pod as running. It has ended when it is deleted at 6 s, so it is not stopped, and its hook does not run.
func TestAWholePodThatHasEndedIsNotStopped(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		pod := podOf(withSleepHook("app", 20))
		b.create(pod)
		wait(6 * second)
		p.reportPhase(v1.PodSucceeded) // in the list that DeletePod requests
		b.deleteWithGrace(pod, 30)
		wait(30 * second)
		require.Empty(b, b.stops())
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
	}, withCommandRunner)
}

// The list at 10 s wrongly has a pod as ended. The provider requests another list to confirm the end; this one, at 11 s, has the
// pod as running. The pod is not reported as running again: it is stopped without its hook, with the 29 s that are left of its 30 s
// since 10 s.
func TestAWholePodThatHasEndedDoesNotRunAgain(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		b.create(podOf(withSleepHook("app", 20)))
		wait(6 * second)
		p.reportPhase(v1.PodSucceeded)
		wait(4500 * time.Millisecond) // until 10.5 s
		p.reportPhase(v1.PodRunning)
		wait(second)
		p.change(func() { p.reported = nil }) // from now on the lists have the real status
		wait(20 * second)
		require.Equal(b, []stop{{id: "uid/app", timeout: 29, at: 11 * second}}, b.stops())
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		phases := map[v1.PodPhase]int{}
		for _, news := range b.notified {
			phases[news.pod.Status.Phase]++
		}
		require.Equal(b, 1, phases[v1.PodRunning], "only the list at 5 s has reported the pod as running")
	}, withCommandRunner)
}

// The list at 5 s has the container app as running, and late as waiting. When the pod is deleted at 6 s, both are stopped at once:
// the hook of a container that does not run yet is not run.
func TestAContainerThatDoesNotRunYetHasNoHook(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		p.reportStates(v1.PodRunning, map[string]v1.ContainerState{
			"app": {Running: &v1.ContainerStateRunning{}}, "late": {Waiting: &v1.ContainerStateWaiting{}},
		})
		pod := podOf(container("app"), withSleepHook("late", 10))
		b.create(pod)
		wait(6 * second)
		b.deleteWithGrace(pod, 30)
		wait(second)
		require.Equal(b, []stop{{id: "uid/app", timeout: 30, at: 6 * second}, {id: "uid/late", timeout: 30, at: 6 * second}}, b.sortedStops())
	}, withCommandRunner)
}

// The list at 5 s shows the pod as running, and its only container as ended with exit code 0. The list at 10 s lacks the pod, and
// so does that at 11 s, which confirms it. The pod has failed, although its container has succeeded.
func TestALostPodHasFailedWhateverItsContainersDid(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		p.reportStates(v1.PodRunning, map[string]v1.ContainerState{"app": {Terminated: &v1.ContainerStateTerminated{}}})
		b.create(podOf(container("app")))
		wait(6 * second)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
		p.change(func() { p.notListed["uid"] = true })
		wait(6 * second)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
	})
}

// GetPods and KillPod wait for the first list, which never succeeds here. After Close they must fail instead.
func TestCallsAfterCloseFailBeforeTheFirstList(t *testing.T) {
	p := newFakePodRuntime(5 * second)
	p.down = true // before the provider begins its first list
	inBubble(t, func(b *testbed) {
		wait(second)
		require.NoError(b, b.Close(b.Context()))
		_, err := b.KillPod(b.Context(), podOf(container("app")), shutdown.KillRequest{})
		require.ErrorIs(b, err, shutdown.ErrNoRetry)
		_, err = b.GetPods(b.Context())
		require.ErrorIs(b, err, lifecycle.ErrClosed)
	}, onFakePodRuntime(p))
}

// Create gets a pod without container statuses, so that a PodRuntime may append its own. Here Create fails, and is called
// again while the pod's container shows the error of the first call: the second call gets none either.
func TestCreateGetsNoContainerStatuses(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		p.change(func() { p.createErr = errAway })
		pod := podOf(container("app"))
		pod.Spec.InitContainers = []v1.Container{container("init")}
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app"}}
		b.create(pod)
		wait(30 * second)
		require.Len(b, b.lastStatus().ContainerStatuses, 1, "virtual-kubelet gets one")
		require.Greater(b, p.countOf(&p.creates), 1)
		require.Empty(b, p.created.Status.ContainerStatuses)
		require.Empty(b, p.created.Status.InitContainerStatuses)
	})
}

// After a restart of the agent, the PodRuntime lists a running pod without its spec. CreatePod brings the spec. The states of
// the containers then follow from the phase Running: app runs, and the init container has succeeded.
func TestAPodListedWithoutASpecGetsItFromCreatePod(t *testing.T) {
	p := newFakePodRuntime(5 * second)
	listed := podOf()
	listed.Status.Phase = v1.PodRunning
	p.alsoListed = []*v1.Pod{listed}
	inBubble(t, func(b *testbed) {
		wait(second)
		pod := podOf(container("app"))
		pod.Spec.InitContainers = []v1.Container{container("init")}
		b.create(pod)
		status := b.lastStatus()
		require.Equal(b, v1.PodRunning, status.Phase)
		require.NotNil(b, status.ContainerStatuses[0].State.Running)
		require.Zero(b, terminatedState(b, status, "init").ExitCode)
	}, onFakePodRuntime(p))
}

// Annotations that Create sets are in all later statuses and calls.
func TestAnnotationsOfCreateAreKept(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		p.change(func() { p.job = "job-7" })
		pod := podOf(container("app"))
		pod.Annotations = map[string]string{"own": "1"}
		b.create(pod)
		wait(second)
		require.Equal(b, map[string]string{"own": "1", "job": "job-7"}, b.lastNotification().pod.Annotations)
		require.NoError(b, b.UpdatePod(b.Context(), pod))
		require.Equal(b, "job-7", b.currentPod().Annotations["job"])
		b.deleteWithGrace(pod, 10)
		wait(20 * second)
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Equal(b, "job-7", b.lastNotification().pod.Annotations["job"])
		require.Equal(b, "job-7", p.deleted.Annotations["job"])
	})
}

// The lists at 10 and 11 s lack a pod: it is lost. It is deleted while the PodRuntime is down, so Delete fails. A new pod with its
// name is created meanwhile. Create is not called for the new pod until Delete has been called again for the lost one, and has
// been answered: here, that this pod does not exist. Then Create fails. Delete is called for the new pod too, as for every pod that
// the API server has deleted.
func TestDeleteIsCalledForALostPod(t *testing.T) {
	onPodRuntimePolledEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		lost := podOf(container("app"))
		b.create(lost)
		wait(6 * second)
		p.change(func() { delete(p.pods, lost.UID) })
		wait(6 * second) // the lists at 10 and 11 s lack it
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)

		p.change(func() { p.down = true })
		b.deleteWithGrace(lost, 10)
		wait(second)
		require.Equal(b, lost.UID, p.deleted.UID)

		newPod := podOf(container("app"))
		newPod.UID = "new"
		b.create(newPod)
		p.change(func() { p.down, p.createErr = false, errdefs.InvalidInput("no such queue") })
		require.Equal(b, 1, p.countOf(&p.creates), "only that of the lost pod")
		wait(6 * second)
		require.Equal(b, 2, p.countOf(&p.creates))
		require.Equal(b, 2, p.countOf(&p.deletes), "of the lost pod: one failed, one was answered")
		b.deleteWithGrace(newPod, 0)
		wait(10 * second)
		require.Equal(b, 2+1, p.countOf(&p.deletes), "one of the new pod")
	})
}
