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
func says(phase v1.PodPhase, states map[string]v1.ContainerState) func(*playedPlace) {
	status := &v1.PodStatus{Phase: phase}
	for name, state := range states {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: name, State: state})
	}
	return func(p *playedPlace) { p.script(func() { p.says = status }) }
}

// withHooks makes a place run the hooks of its pods.
func withHooks(o *virtualkubelet.Options) {
	o.Pods = struct {
		*playedPlace
		*lifecycletest.Runtime
	}{o.Pods.(*playedPlace), nil}
}

// What a place says of a pod and its containers.
func TestWhatAPlaceSays(t *testing.T) {
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	t.Run("a pod that has ended does not run again", func(t *testing.T) {
		p := newPlayedPlace(5 * second)
		inBubble(t, func(b *bed) {
			pod := podOf(sleeping("app", 20))
			b.create(pod)
			wait(6 * second)
			b.deletePod(pod, 30)
			says(v1.PodSucceeded, nil)(p)
			wait(5 * second)
			says(v1.PodRunning, nil)(p)
			wait(20 * second)
			require.Empty(b, b.stops())
			require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
		}, onPlace(p), withHooks)
	})
	t.Run("a container that does not run yet has no hook", func(t *testing.T) {
		p := newPlayedPlace(5 * second)
		inBubble(t, func(b *bed) {
			defer p.stopping.Wait()
			says(v1.PodRunning, map[string]v1.ContainerState{"app": running, "late": {Waiting: &v1.ContainerStateWaiting{}}})(p)
			pod := podOf(plain("app"), sleeping("late", 10))
			b.create(pod)
			wait(6 * second)
			b.deletePod(pod, 30)
			wait(second)
			require.Equal(b, []stop{{"uid/app", 30, 6 * second}, {"uid/late", 30, 6 * second}}, b.sortedStops())
		}, onPlace(p), withHooks)
	})
	t.Run("a pod that was lost has failed, whatever its containers did", func(t *testing.T) {
		atPlace(t, func(b *bed, p *playedPlace) {
			says(v1.PodRunning, map[string]v1.ContainerState{"app": {Terminated: &v1.ContainerStateTerminated{}}})(p)
			b.create(podOf(plain("app")))
			wait(6 * second)
			require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
			p.script(func() { p.hidden["uid"] = true })
			wait(5 * second)
			require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		})
	})
}

// What is left of a grace period is rounded up, as a moment has passed.
func TestTheSecondStopOfAWholePod(t *testing.T) {
	p := newPlayedPlace(3 * second / 2)
	inBubble(t, func(b *bed) {
		defer p.stopping.Wait()
		pod := podOf(plain("app"))
		b.create(pod)
		wait(3 * second)
		p.script(func() { p.away = true })
		b.deletePod(pod, 30)
		wait(second)
		p.script(func() { p.away = false })
		wait(second)
		require.Equal(b, []stop{{"uid/app", 29, 4500 * 1e6}}, b.stops())
	}, onPlace(p))
}

// A pod that is deleted while it waits for its turn is not created.
func TestAPodThatIsDeletedBeforeItsTurn(t *testing.T) {
	atPlace(t, func(b *bed, p *playedPlace) {
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

// A provider that was closed before its place has told anything says so.
func TestAKillAfterCloseAndBeforeAList(t *testing.T) {
	atPlace(t, func(b *bed, p *playedPlace) {
		p.script(func() { p.away = true })
		wait(second)
		require.NoError(b, b.Close(b.Context()))
		_, err := b.KillPod(b.Context(), podOf(plain("app")), shutdown.KillRequest{})
		require.ErrorIs(b, err, shutdown.ErrNoRetry)
		_, err = b.GetPods(b.Context())
		require.ErrorIs(b, err, lifecycle.AgentStopping)
	})
}

// A Create that gets no answer ends with the deletion of its pod.
func TestADeletionDuringACreateThatHangs(t *testing.T) {
	atPlace(t, func(b *bed, p *playedPlace) {
		p.script(func() { p.hang = 1 })
		pod := podOf(plain("app"))
		b.create(pod)
		wait(6 * second)
		b.deletePod(pod, 10)
		wait(30 * second)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
	})
}

// What Create puts on a pod is on it in each later status and call, the last ones included.
func TestAnAnnotationOfCreate(t *testing.T) {
	atPlace(t, func(b *bed, p *playedPlace) {
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

// A pod that its place has lost is deleted there once nevertheless, before its name is free; one
// that was never created is not.
func TestTheDeleteOfAPodThatIsLost(t *testing.T) {
	atPlace(t, func(b *bed, p *playedPlace) {
		pod := podOf(plain("app"))
		b.create(pod)
		wait(6 * second)
		p.script(func() { delete(p.pods, pod.UID) })
		wait(5 * second)
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
		require.Equal(b, 2, p.calls(&p.deletes))
	})
}
