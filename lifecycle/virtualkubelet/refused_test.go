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
)

func TestRefusedPods(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(plain("app"))
		err := b.CreatePod(b.Context(), deleted(pod, 30, time.Now()))
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.True(b, errdefs.IsInvalidInput(err))

		b.create(pod)
		require.NoError(b, b.CreatePod(b.Context(), pod), "it runs already")
		b.deletePod(pod, 30)
		err = b.CreatePod(b.Context(), pod)
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.EqualError(b, err, "pod ns/pod is refused: pod is being terminated")
		wait(30 * second)
		require.Len(b, b.rt.Exits(), 1)

		require.NoError(b, b.Close(b.Context()))
		err = b.CreatePod(b.Context(), podOf(plain("app")))
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.True(b, errdefs.IsInvalidInput(err))
	})
}

func TestANewPodOfTheSameNameWaits(t *testing.T) {
	for name, test := range map[string]struct {
		announced bool
		add       func(*bed, *v1.Pod) error
		ended     time.Duration // of the previous one: its stop has 2 s, or the time that it needs
	}{
		"by force, created": {true, func(b *bed, pod *v1.Pod) error { return b.CreatePod(b.Context(), pod) }, 3 * second},
		"by force, updated": {true, func(b *bed, pod *v1.Pod) error { return b.UpdatePod(b.Context(), pod) }, 3 * second},
		"unheard, created":  {false, func(b *bed, pod *v1.Pod) error { return b.CreatePod(b.Context(), pod) }, 10 * second},
		"unheard, updated":  {false, func(b *bed, pod *v1.Pod) error { return b.UpdatePod(b.Context(), pod) }, 10 * second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				names := b.rt.recordStarts(0)
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 9 * second}
				previous, pod := podOf(plain("app")), podOf(plain("app"))
				pod.UID = "new"
				b.create(previous)
				if test.announced {
					b.deletePod(previous, 30)
				}
				wait(second)
				told := b.notifications(previous)
				require.NoError(b, test.add(b, pod))
				synctest.Wait()
				require.Len(b, names(), 1)
				require.Equal(b, v1.PodPending, b.last().pod.Status.Phase)
				wait(10 * second)
				require.Equal(b, test.ended, b.rt.Exits()[0].At.Sub(b.began))
				require.Len(b, names(), 2)
				require.EqualValues(b, "new", b.last().pod.UID)
				require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
				require.Len(b, b.listed(), 1)
				require.Equal(b, told, b.notifications(previous), "its status would be taken for that of the new one")
			})
		})
	}
}

func TestANewPodThatWaitsIsDeleted(t *testing.T) {
	inBubble(t, func(b *bed) {
		names := b.rt.recordStarts(0)
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 9 * second}
		previous, pod := podOf(plain("app")), podOf(plain("app"))
		pod.UID = "new"
		b.create(previous)
		b.create(pod)
		b.deletePod(pod, 30)
		wait(second)
		require.EqualValues(b, "new", b.last().pod.UID)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		require.Len(b, names(), 1)
	})
}

// Of several pods of a name that follow each other quickly, the last starts when all others have ended.
func TestTheThirdPodOfANameWaitsForTheFirst(t *testing.T) {
	for name, between := range map[string]func(*bed, *v1.Pod){
		"replaced": func(*bed, *v1.Pod) {},
		"deleted":  func(b *bed, second *v1.Pod) { b.deletePod(second, 30) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				names := b.rt.recordStarts(0)
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 9 * second}
				first, next, last := podOf(plain("app")), podOf(plain("app")), podOf(plain("app"))
				next.UID, last.UID = "next", "last"
				b.create(first)
				b.create(next)
				between(b, next)
				wait(second)
				b.create(last)
				wait(second)
				require.Len(b, names(), 1, "the first one runs")
				wait(8 * second)
				require.Len(b, names(), 2)
				require.EqualValues(b, "last", b.last().pod.UID)
				require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
			})
		})
	}
}

// A pod with the UID of a forgotten pod starts again.
func TestAForgottenPodStartsAfresh(t *testing.T) {
	inBubble(t, func(b *bed) {
		pod := podOf(running("app"))
		for i := range 3 {
			b.create(pod)
			require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
			b.deletePod(pod, 30)
			wait(second)
			require.Len(b, b.rt.Execs(), i+1)
		}
	})
}

// A new pod ends the one before it also if its context has ended.
func TestANewPodWhoseContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a context that counted would do so at random
		inBubble(t, func(b *bed) {
			pod := podOf(plain("app"))
			b.create(pod)
			next := pod.DeepCopy()
			next.UID = "next"
			require.NoError(b, b.CreatePod(ctx, next))
			wait(time.Minute)
			require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
			require.Equal(b, next.UID, b.last().pod.UID)
			require.Equal(b, next.UID, b.currentPod().UID)
		})
	}
}
