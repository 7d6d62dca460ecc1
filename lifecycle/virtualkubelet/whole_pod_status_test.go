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

// report makes Statuses report this phase, and these states of the containers by name, for each pod.
func (p *fakePodRuntime) report(phase v1.PodPhase, states map[string]v1.ContainerState) {
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

// What the lists of a PodRuntime say, also if they contradict themselves, decides whether a pod runs, which of its hooks
// run, and how it has ended. The lists come at 0, 5, 10 s and so on, and sooner on request.
func TestStatusesOfAPodRuntime(t *testing.T) {
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	var noStates map[string]v1.ContainerState
	t.Run("a pod that has ended when it is deleted is not stopped", func(t *testing.T) {
		p := newFakePodRuntime(5 * second)
		inBubble(t, func(b *testbed) {
			pod := podOf(withSleepHook("app", 20))
			b.create(pod)
			wait(6 * second)
			p.report(v1.PodSucceeded, noStates) // before DeletePod, which asks for a list at once
			b.deleteWithGrace(pod, 30)
			wait(30 * second)
			require.Empty(b, b.stops())
			require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		}, onFakePodRuntime(p), withCommandRunner)
	})
	t.Run("a pod that has ended does not run again", func(t *testing.T) {
		p := newFakePodRuntime(5 * second)
		inBubble(t, func(b *testbed) {
			defer p.stopping.Wait()
			b.create(podOf(withSleepHook("app", 20)))
			wait(6 * second)
			p.report(v1.PodSucceeded, noStates)
			wait(4500 * time.Millisecond) // the list at 10 s has it as ended, and asks for one at 11 s
			p.report(v1.PodRunning, noStates)
			wait(second)
			p.change(func() { p.reported = nil })
			wait(20 * second)
			require.Equal(b, []stop{{id: "uid/app", timeout: 29, at: 11 * second}}, b.stops(), "the pod is stopped without its hook, with 30 s from 10 s on")
			require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
			phases := map[v1.PodPhase]int{}
			for _, news := range b.notified {
				phases[news.pod.Status.Phase]++
			}
			require.Equal(b, 1, phases[v1.PodRunning], "only the list of 5 s has reported the pod as running")
		}, onFakePodRuntime(p), withCommandRunner)
	})
	t.Run("a container that does not run yet has no hook", func(t *testing.T) {
		p := newFakePodRuntime(5 * second)
		inBubble(t, func(b *testbed) {
			defer p.stopping.Wait()
			p.report(v1.PodRunning, map[string]v1.ContainerState{"app": running, "late": {Waiting: &v1.ContainerStateWaiting{}}})
			pod := podOf(container("app"), withSleepHook("late", 10))
			b.create(pod)
			wait(6 * second)
			b.deleteWithGrace(pod, 30)
			wait(second) // Stop comes at once, with the whole 30 s: the hook of "late" does not run
			require.Equal(b, []stop{{id: "uid/app", timeout: 30, at: 6 * second}, {id: "uid/late", timeout: 30, at: 6 * second}}, b.sortedStops())
		}, onFakePodRuntime(p), withCommandRunner)
	})
	t.Run("a pod that was lost has failed, whatever its containers did", func(t *testing.T) {
		onPodRuntimeListedEvery5s(t, func(b *testbed, p *fakePodRuntime) {
			p.report(v1.PodRunning, map[string]v1.ContainerState{"app": {Terminated: &v1.ContainerStateTerminated{}}})
			b.create(podOf(container("app")))
			wait(6 * second)
			require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
			p.change(func() { p.hidden["uid"] = true })
			wait(6 * second) // the lists of 10 and 11 s lack the pod
			require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		})
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
// again while the pod's containers show the error of the first call: the second call gets none either.
func TestCreateGetsNoContainerStatuses(t *testing.T) {
	onPodRuntimeListedEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		p.change(func() { p.createErr = errAway })
		pod := podOf(container("app"))
		pod.Spec.InitContainers = []v1.Container{container("init")}
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app"}}
		b.create(pod)
		wait(30 * second)
		require.Len(b, b.lastStatus().ContainerStatuses, 1)
		require.Greater(b, p.countOf(&p.creates), 1)
		require.Empty(b, p.created.Status.ContainerStatuses)
		require.Empty(b, p.created.Status.InitContainerStatuses)
		b.deleteWithGrace(pod, 10)
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
	onPodRuntimeListedEvery5s(t, func(b *testbed, p *fakePodRuntime) {
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

// A pod is lost: the PodRuntime no longer lists it. It is deleted while the PodRuntime is down, so its Delete fails. A new pod
// with its name is created only after a Delete of the lost pod has succeeded. The Create of the new pod fails, and
// Delete is called for it too.
func TestDeleteIsCalledForALostPod(t *testing.T) {
	onPodRuntimeListedEvery5s(t, func(b *testbed, p *fakePodRuntime) {
		pod := podOf(container("app"))
		b.create(pod)
		wait(6 * second)
		p.change(func() { delete(p.pods, pod.UID) }) // the pod is lost
		wait(6 * second)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		p.change(func() { p.down = true }) // the first Delete fails
		b.deleteWithGrace(pod, 10)
		wait(second)
		require.Equal(b, pod.UID, p.deleted.UID)
		other := podOf(container("app"))
		other.UID = "2"
		b.create(other)
		p.change(func() { p.down, p.createErr = false, errdefs.InvalidInput("no such queue") })
		require.Equal(b, 1, p.countOf(&p.creates), "the new pod waits for the Delete of the old one")
		wait(6 * second)
		require.Equal(b, 2, p.countOf(&p.creates))
		require.Equal(b, 2, p.countOf(&p.deletes), "one failed, one succeeded")
		b.deleteWithGrace(other, 0)
		wait(10 * second)
		require.Equal(b, 3, p.countOf(&p.deletes), "and one for the pod that could not be created")
	})
}
