//go:build go1.25

package virtualkubelet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A pod is deleted with a grace period of 30 s. Its sleep hook takes 5 s, and its container exits 2 s after its stop signal.
// virtual-kubelet gets only the final status, and the provider then forgets the pod.
func TestADeletedPodEndsAndIsForgotten(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 2 * second}
		pod := podOf(withSleepHook("app", 5))
		b.create(pod)
		b.deleteWithGrace(pod, 30)
		require.Zero(b, b.elapsed(), "DeletePod does not wait")
		wait(6 * second)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)

		wait(second)
		require.Equal(b, []stop{{id: "uid/app", timeout: 30 - 5, at: 5 * second}}, b.stops())
		require.Equal(b, (5+2)*second, b.lastNotification().at)
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Equal(b, "Completed", terminatedState(b, b.lastStatus(), "app").Reason)
		_, err := b.GetPod(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
		require.True(b, errdefs.IsNotFound(b.DeletePod(b.Context(), pod)))
	})
}

// A pod with a sleep hook of 20 s is deleted with a grace period of 30 s. Its container ignores the stop signal: it would be
// stopped at 20 s with 10 s, and killed at 30 s. The pod is then deleted again. A grace period that ends earlier cuts off the
// hook or the stop; one that ends later changes nothing. After a hook that was cut off, the container has the minimum of 2 s.
func TestARepeatedDeletionOnlyShortens(t *testing.T) {
	for name, test := range map[string]struct {
		at      time.Duration // of the repeated DeletePod
		seconds int64         // its grace period
		stops   []stop
		ended   time.Duration
	}{
		"the hook is cut off at the new deadline": {
			at: 3 * second, seconds: 4, stops: []stop{{id: "uid/app", timeout: 2, at: (3 + 4) * second}}, ended: (3 + 4 + 2) * second,
		},
		"a stop in progress is shortened": {
			at: 22 * second, seconds: 3, ended: (22 + 3) * second,
			stops: []stop{{id: "uid/app", timeout: 10, at: 20 * second}, {id: "uid/app", timeout: 3, at: 22 * second}},
		},
		"a later deadline, 22 s + 29 s, changes nothing": {
			at: 22 * second, seconds: 29, stops: []stop{{id: "uid/app", timeout: 10, at: 20 * second}}, ended: 30 * second,
		},
		"zero is one second": {
			at: 3 * second, seconds: 0, stops: []stop{{id: "uid/app", timeout: 2, at: (3 + 1) * second}}, ended: (3 + 1 + 2) * second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
				pod := podOf(withSleepHook("app", 20))
				b.create(pod)
				b.deleteWithGrace(pod, 30)
				wait(test.at)
				b.deleteWithGrace(pod, test.seconds)
				wait(time.Minute)
				require.Equal(b, test.stops, b.stops())
				require.Equal(b, test.ended, b.lastNotification().at)
			})
		})
	}
}

// virtual-kubelet may announce a deletion, or a new one with a shorter grace period, as an update. UpdatePod must then do
// what DeletePod does. The first update has 30 s, and the container ignores its stop signal. The second update comes
// at 10 s and shortens the grace period to 3 s, so the container is killed at 10 s + 3 s = 13 s.
func TestUpdatePodOfADeletedPodDeletes(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(container("app"))
		b.create(pod)
		require.NoError(b, b.UpdatePod(b.Context(), deleted(pod, 30, time.Now())))
		wait(10 * second)
		require.NoError(b, b.UpdatePod(b.Context(), deleted(pod, 3, time.Now())))
		wait(3 * second)
		require.Equal(b, 13*second, b.lastNotification().at)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
	})
}
