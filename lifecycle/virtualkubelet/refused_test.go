//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// virtual-kubelet may call CreatePod late. CreatePod refuses a pod that is deleted or terminating: it must not start again.
func TestCreatePodIsRefusedForATerminatingPod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(container("app"))
		err := b.CreatePod(b.Context(), deleted(pod, 30, time.Now()))
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.True(b, errdefs.IsInvalidInput(err))

		b.create(pod)
		require.NoError(b, b.CreatePod(b.Context(), pod), "the pod runs already")
		b.deleteWithGrace(pod, 30)
		err = b.CreatePod(b.Context(), pod)
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.EqualError(b, err, "pod ns/pod is refused: pod is being terminated")
		wait(30 * second)
		require.Len(b, b.rt.Exits(), 1)
	})
}

// After Close, CreatePod and Adopt refuse every pod.
func TestNoPodIsCreatedOrAdoptedAfterClose(t *testing.T) {
	inBubble(t, func(b *testbed) {
		require.NoError(b, b.Close(b.Context()))
		err := b.CreatePod(b.Context(), podOf(container("app")))
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.True(b, errdefs.IsInvalidInput(err))
		err = b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: podOf()})
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.True(b, errdefs.IsInvalidInput(err))
	})
}

// A pod is replaced at 1 s, in a call of UpdatePod or CreatePod, by one with the same name and another UID. The new pod
// starts when the old one has ended. virtual-kubelet knows pods by name, so it gets no more statuses of the old pod.
//
// If the old pod was deleted before, it was deleted by force since: it is killed after the minimum of 2 s. Otherwise it keeps
// its own grace period of 30 s, and its container exits 9 s after its stop signal.
func TestANewPodWaitsForTheOldOneWithItsName(t *testing.T) {
	create := func(b *testbed, pod *v1.Pod) error { return b.CreatePod(b.Context(), pod) }
	update := func(b *testbed, pod *v1.Pod) error { return b.UpdatePod(b.Context(), pod) }
	for name, test := range map[string]struct {
		wasDeleted bool                          // the old pod, with 30 s
		add        func(*testbed, *v1.Pod) error // adds the new pod, at 1 s
		oldEnds    time.Duration
	}{
		"deleted, created": {wasDeleted: true, add: create, oldEnds: (1 + 2) * second},
		"deleted, updated": {wasDeleted: true, add: update, oldEnds: (1 + 2) * second},
		"running, created": {wasDeleted: false, add: create, oldEnds: (1 + 9) * second},
		"running, updated": {wasDeleted: false, add: update, oldEnds: (1 + 9) * second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 9 * second}
				oldPod, newPod := podOf(container("app")), podOf(container("app"))
				newPod.UID = "new"
				b.create(oldPod)
				if test.wasDeleted {
					b.deleteWithGrace(oldPod, 30)
				}
				wait(second)
				notificationsOfOld := b.countNotifications(oldPod)
				require.NoError(b, test.add(b, newPod))
				synctest.Wait()
				require.False(b, b.rt.wasStarted("new/app"))
				require.Equal(b, v1.PodPending, b.lastStatus().Phase)

				wait(10 * second)
				require.Equal(b, test.oldEnds, b.rt.Exits()[0].At.Sub(b.began))
				require.True(b, b.rt.wasStarted("new/app"))
				require.EqualValues(b, "new", b.lastNotification().pod.UID)
				require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
				require.Len(b, b.podsForShutdown(), 1)
				require.Equal(b, notificationsOfOld, b.countNotifications(oldPod))
			})
		})
	}
}

// Three pods with one name are created. The second never starts, because the third replaces it or because it was deleted. The
// third starts when the first has ended, 9 s after its stop signal.
func TestTheThirdPodOfANameWaitsForTheFirst(t *testing.T) {
	for name, isDeleted := range map[string]bool{"the second pod is replaced": false, "the second pod is deleted": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 9 * second}
				pod1, pod2, pod3 := podOf(container("app")), podOf(container("app")), podOf(container("app"))
				pod2.UID, pod3.UID = "2", "3"
				b.create(pod1)
				b.create(pod2)
				if isDeleted {
					b.deleteWithGrace(pod2, 30)
					synctest.Wait()
					require.Equal(b, pod2.UID, b.lastNotification().pod.UID)
					require.Equal(b, v1.PodFailed, b.lastStatus().Phase, "it ends at once, although the first pod runs")
				}
				wait(second)
				b.create(pod3)
				wait(second)
				require.False(b, b.rt.wasStarted("3/app"))
				wait(8 * second)
				require.Equal(b, pod3.UID, b.lastNotification().pod.UID)
				require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
				require.False(b, b.rt.wasStarted("2/app"))
			})
		})
	}
}

// A new pod replaces a running one with its name, and the context of its CreatePod has ended. The old pod is stopped and the new
// one started nevertheless. The test runs 20 times, because a dependence on the context would show only in some runs.
func TestCreatePodIgnoresTheEndOfItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		inBubble(t, func(b *testbed) {
			b.create(podOf(container("app")))
			newPod := podOf(container("app"))
			newPod.UID = "new"
			require.NoError(b, b.CreatePod(ended, newPod))
			wait(time.Minute)
			require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
			require.Equal(b, newPod.UID, b.lastNotification().pod.UID)
			require.Equal(b, newPod.UID, b.currentPod().UID)
		})
	}
}
