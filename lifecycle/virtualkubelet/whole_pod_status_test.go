//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// says is a status of a pod, with the states of its containers.
func says(phase v1.PodPhase, states map[string]v1.ContainerState) func(*playedPods) {
	status := &v1.PodStatus{Phase: phase}
	for name, state := range states {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: name, State: state})
	}
	return func(p *playedPods) { p.script(func() { p.says = status }) }
}

// withHooks makes a pod runtime run the hooks of its pods.
func withHooks(o *virtualkubelet.Options) {
	o.Pods = struct {
		*playedPods
		*lifecycletest.Runtime
	}{o.Pods.(*playedPods), nil}
}

// What a pod runtime says of a pod and its containers.
func TestWhatAPodRuntimeSays(t *testing.T) {
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	t.Run("a pod that has ended when it is deleted is not stopped", func(t *testing.T) {
		p := newPlayedPods(5 * second)
		inBubble(t, func(b *bed) {
			pod := podOf(sleeping("app", 20))
			b.create(pod)
			wait(6 * second)
			says(v1.PodSucceeded, nil)(p) // before DeletePod, which asks for a list at once
			b.deletePod(pod, 30)
			wait(30 * second)
			require.Empty(b, b.stops())
			require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
		}, onPlayedPods(p), withHooks)
	})
	t.Run("a pod that has ended does not run again", func(t *testing.T) {
		p := newPlayedPods(5 * second)
		inBubble(t, func(b *bed) {
			defer p.stopping.Wait()
			b.create(podOf(sleeping("app", 20)))
			wait(6 * second)
			says(v1.PodSucceeded, nil)(p)
			wait(4500 * time.Millisecond) // the list at 10 s has it as ended, and asks for one at 11 s
			says(v1.PodRunning, nil)(p)
			wait(second)
			p.script(func() { p.says = nil })
			wait(20 * second)
			require.Equal(b, []stop{{"uid/app", 29, 11 * second}}, b.stops(), "what runs after all is stopped, without its hook")
			require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
			phases := map[v1.PodPhase]int{}
			for _, news := range b.heard {
				phases[news.pod.Status.Phase]++
			}
			require.Equal(b, 1, phases[v1.PodRunning], "at 5 s")
		}, onPlayedPods(p), withHooks)
	})
	t.Run("a container that does not run yet has no hook", func(t *testing.T) {
		p := newPlayedPods(5 * second)
		inBubble(t, func(b *bed) {
			defer p.stopping.Wait()
			says(v1.PodRunning, map[string]v1.ContainerState{"app": running, "late": {Waiting: &v1.ContainerStateWaiting{}}})(p)
			pod := podOf(plain("app"), sleeping("late", 10))
			b.create(pod)
			wait(6 * second)
			b.deletePod(pod, 30)
			wait(second)
			require.Equal(b, []stop{{"uid/app", 30, 6 * second}, {"uid/late", 30, 6 * second}}, b.sortedStops())
		}, onPlayedPods(p), withHooks)
	})
	t.Run("a pod that was lost has failed, whatever its containers did", func(t *testing.T) {
		withPlayedPods(t, func(b *bed, p *playedPods) {
			says(v1.PodRunning, map[string]v1.ContainerState{"app": {Terminated: &v1.ContainerStateTerminated{}}})(p)
			b.create(podOf(plain("app")))
			wait(6 * second)
			require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
			p.script(func() { p.hidden["uid"] = true })
			wait(6 * second)
			require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		})
	})
}

// What is left of a grace period is rounded up, as a moment has passed.
func TestTheSecondStopOfAWholePod(t *testing.T) {
	p := newPlayedPods(3 * second / 2)
	inBubble(t, func(b *bed) {
		defer p.stopping.Wait()
		pod := podOf(plain("app"))
		b.create(pod)
		wait(4200 * time.Millisecond)
		p.script(func() { p.failStops = 1 })
		b.deletePod(pod, 30)
		wait(3 * second)
		require.Equal(b, []stop{{"uid/app", 29, 5700 * time.Millisecond}}, b.stops())
	}, onPlayedPods(p))
}

// A pod that is deleted while it waits for its turn is not created.
func TestAPodThatIsDeletedBeforeItsTurn(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		var pods []*v1.Pod
		for i := range 50 {
			pod := podOf(plain("app"))
			pod.Name, pod.UID = strconv.Itoa(i), types.UID(strconv.Itoa(i))
			pods = append(pods, pod)
		}
		b.rt.start = func(context.Context, string) error {
			<-time.After(5 * second)
			for _, pod := range pods[1:] {
				b.deletePod(pod, 10)
			}
			return nil
		}
		wait(second)
		for _, pod := range pods {
			b.create(pod)
		}
		wait(30 * second)
		require.Equal(b, 1, p.calls(&p.creates))
	}, func(o *virtualkubelet.Options) { o.MaxStarts = 1 })
}

// A provider that was closed before its pod runtime has told anything says so.
func TestAKillAfterCloseAndBeforeAList(t *testing.T) {
	p := newPlayedPods(5 * second)
	p.away = true // before the provider begins its first list
	inBubble(t, func(b *bed) {
		wait(second)
		require.NoError(b, b.Close(b.Context()))
		_, err := b.KillPod(b.Context(), podOf(plain("app")), shutdown.KillRequest{})
		require.ErrorIs(b, err, shutdown.ErrNoRetry)
		_, err = b.GetPods(b.Context())
		require.ErrorIs(b, err, lifecycle.ErrClosed)
	}, onPlayedPods(p))
}

// A Create that gets no answer ends with the deletion of its pod.
func TestADeletionDuringACreateThatHangs(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		p.script(func() { p.hang = 1 })
		pod := podOf(plain("app"))
		b.create(pod)
		wait(6 * second)
		b.deletePod(pod, 10)
		wait(30 * second)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
	})
}

// Create is given a pod without container statuses, also one whose status has told of some before, so
// that a PodRuntime may append its own.
func TestTheStatusThatCreateIsGiven(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		p.script(func() { p.refused = errAway })
		pod := podOf(plain("app"))
		pod.Spec.InitContainers = []v1.Container{plain("init")}
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app"}}
		b.create(pod)
		wait(30 * second)
		require.Len(b, b.last().pod.Status.ContainerStatuses, 1)
		require.Greater(b, p.calls(&p.creates), 1)
		require.Empty(b, p.created.Status.ContainerStatuses)
		require.Empty(b, p.created.Status.InitContainerStatuses)
		b.deletePod(pod, 10)
	})
}

// What Create puts on a pod is on it in each later status and call, the last ones included.
func TestAnAnnotationOfCreate(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		p.script(func() { p.job = "job-7" })
		pod := podOf(plain("app"))
		pod.Annotations = map[string]string{"own": "1"}
		b.create(pod)
		wait(second)
		require.Equal(b, map[string]string{"own": "1", "job": "job-7"}, b.last().pod.Annotations)
		require.NoError(b, b.UpdatePod(b.Context(), pod))
		require.Equal(b, "job-7", b.currentPod().Annotations["job"])
		b.deletePod(pod, 10)
		wait(20 * second)
		require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
		require.Equal(b, "job-7", b.last().pod.Annotations["job"])
		require.Equal(b, "job-7", p.deleted.Annotations["job"])
	})
}

// A pod that its pod runtime has lost is deleted there once nevertheless, before its name is free, and so is
// one that could not be created.
func TestTheDeleteOfAPodThatIsLost(t *testing.T) {
	withPlayedPods(t, func(b *bed, p *playedPods) {
		pod := podOf(plain("app"))
		b.create(pod)
		wait(6 * second)
		p.script(func() { delete(p.pods, pod.UID) })
		wait(6 * second)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		p.script(func() { p.away = true })
		b.deletePod(pod, 10)
		wait(second)
		require.Equal(b, pod.UID, p.deleted.UID)
		other := podOf(plain("app"))
		other.UID = "2"
		b.create(other)
		p.script(func() { p.away, p.refused = false, errdefs.InvalidInput("no such queue") })
		require.Equal(b, 1, p.calls(&p.creates))
		wait(6 * second)
		require.Equal(b, 2, p.calls(&p.creates))
		require.Equal(b, 2, p.calls(&p.deletes))
		b.deletePod(other, 0)
		wait(10 * second)
		require.Equal(b, 3, p.calls(&p.deletes))
	})
}
