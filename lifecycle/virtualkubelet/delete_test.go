//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The plain case. A pod with a sleep hook of 5 s and a container that needs 2 s is deleted with 30 s. The stop has
// 30 s - 5 s, and the pod ends at 5 s + 2 s. virtual-kubelet gets only the final status, and the provider then
// forgets the pod.
func TestADeletedPodEndsAndIsForgotten(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 2 * second}
		pod := podOf(withSleepHook("app", 5))
		b.create(pod)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)

		b.deletePod(pod, 30)
		require.Zero(b, b.elapsed(), "DeletePod does not wait")
		wait(6 * second)
		require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
		wait(second)
		require.Equal(b, []stop{{"uid/app", 25, 5 * second}}, b.stops())
		last := b.last()
		require.Equal(b, 7*second, last.at)
		require.Equal(b, v1.PodSucceeded, last.pod.Status.Phase)
		require.Equal(b, "Completed", terminated(b, last.pod.Status, "app").Reason)

		_, err := b.GetPod(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
		require.True(b, errdefs.IsNotFound(b.DeletePod(b.Context(), pod)))
	})
}

// A pod with a sleep hook of 20 s is deleted with 30 s, and then again. A grace period that ends earlier cuts off the
// hook or the stop; one that ends later changes nothing: the stop at 20 s has 30 s - 20 s, and the container is
// killed at 30 s. A container whose hook was cut at the deadline gets the minimum of 2 s.
func TestARepeatedDeletionOnlyShortens(t *testing.T) {
	type call struct {
		at      time.Duration // of the repeated DeletePod
		seconds int64         // its grace period
	}
	for name, test := range map[string]struct {
		calls []call
		stops []stop
		ended time.Duration
	}{
		"the hook ends at the new deadline": { // 3 s + 4 s
			calls: []call{{3 * second, 4}}, stops: []stop{{"uid/app", 2, 7 * second}}, ended: 9 * second,
		},
		"a stop in progress is shortened": { // to 22 s + 3 s
			calls: []call{{22 * second, 3}}, stops: []stop{{"uid/app", 10, 20 * second}, {"uid/app", 3, 22 * second}}, ended: 25 * second,
		},
		"the same grace period changes nothing": {
			calls: []call{{3 * second, 30}, {22 * second, 30}}, stops: []stop{{"uid/app", 10, 20 * second}}, ended: 30 * second,
		},
		"a longer grace period changes nothing": {
			calls: []call{{3 * second, 600}}, stops: []stop{{"uid/app", 10, 20 * second}}, ended: 30 * second,
		},
		"a later deadline changes nothing": {
			calls: []call{{22 * second, 29}}, stops: []stop{{"uid/app", 10, 20 * second}}, ended: 30 * second,
		},
		"repeatedly shorter": { // to 1 s + 25 s, then 2 s + 12 s, then 3 s + 1 s
			calls: []call{{second, 25}, {2 * second, 12}, {3 * second, 1}}, stops: []stop{{"uid/app", 2, 4 * second}}, ended: 6 * second,
		},
		"zero is one second": { // 3 s + 1 s
			calls: []call{{3 * second, 0}}, stops: []stop{{"uid/app", 2, 4 * second}}, ended: 6 * second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
				pod := podOf(withSleepHook("app", 20))
				b.create(pod)
				b.deletePod(pod, 30)
				for _, c := range test.calls {
					wait(c.at - b.elapsed())
					b.deletePod(pod, c.seconds)
				}
				wait(time.Minute)
				require.Equal(b, test.stops, b.stops())
				require.Equal(b, test.ended, b.last().at)
			})
		})
	}
}

// A sidecar waits for the regular container, which ignores its stop signal, at most until the deadline. A second
// deletion at 10 s with 5 s moves the deadline from 30 to 15 s. The sidecar is stopped then, with the minimum of 2 s.
func TestAShorterDeletionShortensTheWaitOfSidecars(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(plain("app"))
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
		b.create(pod)
		b.deletePod(pod, 30)
		wait(10 * second)
		b.deletePod(pod, 5)
		wait(5 * second)
		require.Equal(b, []stop{{"uid/app", 30, 0}, {"uid/app", 5, 10 * second}, {"uid/proxy", 2, 15 * second}}, b.stops())
		require.Equal(b, 15*second, b.last().at)
	})
}

// 100 concurrent deletions with grace periods of 10 to 16 s: the hook of 4 s runs once, and one stop follows, with
// what is left of the shortest: 10 s - 4 s = 6 s. The container takes 1 s, so the pod ends at 5 s.
func TestConcurrentDeletionsShareOneTermination(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: second, Exec: func(context.Context, []string) ([]byte, error) {
			<-time.After(4 * second)
			return nil, nil
		}}
		pod := podOf(withExecHook("app"))
		b.create(pod)
		var calls sync.WaitGroup
		for i := range 100 {
			calls.Go(func() { require.NoError(b, b.DeletePod(b.Context(), deleted(pod, int64(10+i%7), time.Now()))) })
		}
		calls.Wait()
		wait(5 * second)
		require.Len(b, b.rt.Execs(), 1)
		require.Equal(b, []stop{{"uid/app", 6, 4 * second}}, b.stops())
		require.Equal(b, 5*second, b.last().at)
		require.Len(b, b.events.All(), 1)
	})
}

// virtual-kubelet may announce a deletion, or a shorter one, as an update. UpdatePod must then do what DeletePod
// does: an update at 10 s with 3 s has the container, which ignores its stop signal, killed at 13 s.
func TestUpdatePodOfADeletedPodDeletes(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(plain("app"))
		b.create(pod)
		require.NoError(b, b.UpdatePod(b.Context(), deleted(pod, 30, time.Now())))
		wait(10 * second)
		require.NoError(b, b.UpdatePod(b.Context(), deleted(pod, 3, time.Now())))
		wait(3 * second)
		require.Equal(b, 13*second, b.last().at)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
	})
}
