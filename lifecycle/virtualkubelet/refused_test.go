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
func TestANewPodWaitsForTheOldOneWithItsName(t *testing.T) {
	for name, test := range map[string]struct {
		wasDeleted bool                          // the old pod was deleted before the new one came, with 30 s
		add        func(*testbed, *v1.Pod) error // adds the new pod, at 1 s
		// ended is when the old pod ends. If it was deleted, and a new pod has its name before it has ended, it was deleted by
		// force since: it is killed at 1 s + the minimum of 2 s. If it was not deleted, it keeps its own grace period of 30 s,
		// and its container exits 9 s after its stop signal, at 1 s + 9 s.
		ended time.Duration
	}{
		"deleted, created": {wasDeleted: true, add: func(b *testbed, pod *v1.Pod) error { return b.CreatePod(b.Context(), pod) }, ended: 3 * second},
		"deleted, updated": {wasDeleted: true, add: func(b *testbed, pod *v1.Pod) error { return b.UpdatePod(b.Context(), pod) }, ended: 3 * second},
		"running, created": {wasDeleted: false, add: func(b *testbed, pod *v1.Pod) error { return b.CreatePod(b.Context(), pod) }, ended: 10 * second},
		"running, updated": {wasDeleted: false, add: func(b *testbed, pod *v1.Pod) error { return b.UpdatePod(b.Context(), pod) }, ended: 10 * second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				startedNames := b.rt.recordStartsThatTake(0)
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 9 * second}
				previous, pod := podOf(container("app")), podOf(container("app"))
				pod.UID = "new"
				b.create(previous)
				if test.wasDeleted {
					b.deleteWithGrace(previous, 30)
				}
				wait(second)
				notifiedBefore := b.countNotifications(previous)
				require.NoError(b, test.add(b, pod))
				synctest.Wait()
				require.Len(b, startedNames(), 1)
				require.Equal(b, v1.PodPending, b.lastStatus().Phase)
				wait(10 * second)
				require.Equal(b, test.ended, b.rt.Exits()[0].At.Sub(b.began))
				require.Len(b, startedNames(), 2)
				require.EqualValues(b, "new", b.lastNotification().pod.UID)
				require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
				require.Len(b, b.podsForShutdown(), 1)
				require.Equal(b, notifiedBefore, b.countNotifications(previous), "the old pod's status is not sent")
			})
		})
	}
}

// Three pods with one name are created. The second never starts, because the third replaces it or because it was deleted. The
// third starts when the first has ended, 9 s after its stop signal.
func TestTheThirdPodOfANameWaitsForTheFirst(t *testing.T) {
	for name, between := range map[string]func(*testbed, *v1.Pod){
		"replaced": func(*testbed, *v1.Pod) {},
		"deleted": func(b *testbed, second *v1.Pod) {
			b.deleteWithGrace(second, 30)
			synctest.Wait()
			require.EqualValues(b, second.UID, b.lastNotification().pod.UID)
			require.Equal(b, v1.PodFailed, b.lastStatus().Phase, "the second pod ends at once, although the first runs")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				startedNames := b.rt.recordStartsThatTake(0)
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 9 * second}
				first, next, last := podOf(container("app")), podOf(container("app")), podOf(container("app"))
				next.UID, last.UID = "next", "last"
				b.create(first)
				b.create(next)
				between(b, next)
				wait(second)
				b.create(last)
				wait(second)
				require.Len(b, startedNames(), 1, "the first pod still runs")
				wait(8 * second)
				require.Len(b, startedNames(), 2)
				require.EqualValues(b, "last", b.lastNotification().pod.UID)
				require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
			})
		})
	}
}

// A new pod replaces a running one with its name, and the context of its CreatePod has ended. The old pod is stopped
// and the new one started all the same.
func TestCreatePodIgnoresTheEndOfItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a dependence on the context would show only in some runs
		inBubble(t, func(b *testbed) {
			pod := podOf(container("app"))
			b.create(pod)
			next := pod.DeepCopy()
			next.UID = "next"
			require.NoError(b, b.CreatePod(ctx, next))
			wait(time.Minute)
			require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
			require.Equal(b, next.UID, b.lastNotification().pod.UID)
			require.Equal(b, next.UID, b.currentPod().UID)
		})
	}
}
