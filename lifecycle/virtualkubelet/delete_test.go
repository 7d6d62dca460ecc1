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

// The plain case. A deleted pod with a sleep hook of 5 s and a container that needs 2 s ends at 7 s;
// virtual-kubelet gets only the final status, and the provider then forgets the pod.
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

// A pod with a sleep hook of 20 s is deleted with 30 s, and then again. A shorter grace period cuts off the
// hook or the stop; a longer one changes nothing. After its deadline a container gets 2 s.
func TestARepeatedDeletionOnlyShortens(t *testing.T) {
	type call struct {
		at      time.Duration
		seconds int64
	}
	for name, test := range map[string]struct {
		calls []call
		stops []stop
		ended time.Duration
	}{
		"the hook ends at the new deadline": {
			calls: []call{{3 * second, 4}}, stops: []stop{{"uid/app", 2, 7 * second}}, ended: 9 * second,
		},
		"a stop in progress is shortened": {
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
		"repeatedly shorter": {
			calls: []call{{second, 25}, {2 * second, 12}, {3 * second, 1}}, stops: []stop{{"uid/app", 2, 4 * second}}, ended: 6 * second,
		},
		"zero is one second": {
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

// A sidecar is stopped when the regular container has ended or the deadline is over, whichever is first. A
// second deletion moves that deadline from 30 to 15 s.
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

// 100 concurrent deletions with grace periods of 10 to 16 s: the hook runs once, and the one stop at 4 s has
// the 6 s that are left of the shortest.
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

// virtual-kubelet may announce a deletion, or a shorter one, as an update. UpdatePod must then do what
// DeletePod does.
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
