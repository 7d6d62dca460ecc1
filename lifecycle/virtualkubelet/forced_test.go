//go:build go1.25

package virtualkubelet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// A pod with a sleep hook of 100 s is deleted with a grace period of 120 s, and at 10 s by force, which removes it from the API
// server. virtual-kubelet then passes the provider's own copy of the pod to DeletePod. The pod has 1 s more: the hook is cut at
// 11 s, and the container is killed after the minimum of 2 s, at 13 s.
func TestAForcedDeletionHasOneSecond(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(withSleepHook("app", 100))
		b.create(pod)
		b.deleteWithGrace(pod, 120)
		wait(10 * second)
		require.NoError(b, b.DeletePod(b.Context(), b.currentPod()))
		wait(3 * second)
		require.Equal(b, []stop{{id: "uid/app", timeout: 2, at: 11 * second}}, b.stops())
		require.Equal(b, 13*second, b.lastNotification().at)
	})
}

// The API server no longer has a running pod, so virtual-kubelet calls DeletePod with the provider's own copy of it. The provider has
// not seen a deletion of it before, so this is no forced deletion: the pod has its own 30 s. A second call changes nothing.
func TestAPodMissingFromTheAPIServerHasItsOwnGracePeriod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		b.create(podOf(container("app")))
		require.NoError(b, b.DeletePod(b.Context(), b.currentPod()))
		require.NoError(b, b.DeletePod(b.Context(), b.currentPod()))
		wait(time.Minute)
		require.Equal(b, []stop{{id: "uid/app", timeout: 30, at: 0}}, b.stops())
	})
}

// The clocks of the API server and the node differ by an hour. A deletion of a known pod still has 30 s,
// because its deletionTimestamp is not compared with the clock.
func TestClockSkewDoesNotShortenANewDeletion(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		inBubble(t, func(b *testbed) {
			b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
			pod := podOf(container("app"))
			b.create(pod)
			require.NoError(b, b.DeletePod(b.Context(), deleted(pod, 30, time.Now().Add(skew))))
			wait(time.Minute)
			require.Equal(b, []stop{{id: "uid/app", timeout: 30, at: 0}}, b.stops())
		})
	}
}

// The methods for one pod return an errdefs.ErrNotFound for an unknown pod, which virtual-kubelet expects. GetPods is empty.
func TestAnUnknownPodIsNotFound(t *testing.T) {
	inBubble(t, func(b *testbed) {
		require.True(b, errdefs.IsNotFound(b.DeletePod(b.Context(), podOf())))
		require.True(b, errdefs.IsNotFound(b.UpdatePod(b.Context(), podOf())))
		_, err := b.GetPodStatus(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
		pods, err := b.GetPods(b.Context())
		require.NoError(b, err)
		require.Empty(b, pods)
	})
}

// An earlier pod, with the UID "uid", has ended, and a new one with the same name and the UID "new" runs. DeletePod stops the
// new pod if it gets that UID, or none, which means the newest pod with the name. For any other UID it returns NotFound.
func TestTheUIDDecidesWhichPodIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		uid   types.UID // of the pod that DeletePod gets
		stops bool      // the new pod; else DeletePod returns NotFound
	}{
		"the UID of the new pod":     {uid: "new", stops: true},
		"the UID of the earlier pod": {uid: "uid"},
		"an unknown UID":             {uid: "3"},
		"no UID":                     {uid: "", stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				earlier, pod := podOf(container("app")), podOf(container("app"))
				pod.UID = "new"
				b.create(earlier)
				b.deleteWithGrace(earlier, 0)
				wait(second)
				b.create(pod)

				passed := deleted(pod, 30, time.Now())
				passed.UID = test.uid
				err := b.DeletePod(b.Context(), passed)
				wait(second)
				if !test.stops {
					require.True(b, errdefs.IsNotFound(err))
					require.Len(b, b.stops(), 1, "only the stop of the earlier pod")
					return
				}
				require.NoError(b, err)
				require.Equal(b, stop{id: "new/app", timeout: 30, at: second}, b.stops()[1])
				require.Equal(b, pod.UID, b.lastNotification().pod.UID)
			})
		})
	}
}

// A deleted pod ends before virtual-kubelet has registered its callback with NotifyPods. The pod is kept until the callback
// has got its final status, and is then forgotten.
func TestADeletedPodIsKeptUntilNotifyPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := virtualkubelet.New(virtualkubelet.Options{Runtime: newScriptedRuntime()})
		require.NoError(t, err)
		require.NoError(t, p.CreatePod(t.Context(), podOf(container("app"))))
		synctest.Wait()
		require.NoError(t, p.DeletePod(t.Context(), podOf(container("app"))))
		synctest.Wait()
		status, err := p.GetPodStatus(t.Context(), "ns", "pod")
		require.NoError(t, err)
		require.Equal(t, v1.PodSucceeded, status.Phase)

		notified := make(chan *v1.Pod, 1)
		p.NotifyPods(t.Context(), func(pod *v1.Pod) { notified <- pod })
		require.Equal(t, *status, (<-notified).Status)
		synctest.Wait()
		_, err = p.GetPod(t.Context(), "ns", "pod")
		require.True(t, errdefs.IsNotFound(err))
		require.NoError(t, p.Close(t.Context()))
	})
}

// An agent ends before it has called NotifyPods. Close ends the pod's goroutines all the same.
func TestCloseBeforeNotifyPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := virtualkubelet.New(virtualkubelet.Options{Runtime: newScriptedRuntime()})
		require.NoError(t, err)
		require.NoError(t, p.CreatePod(t.Context(), podOf(container("app"))))
		synctest.Wait()
		require.NoError(t, p.Close(t.Context()))
	})
}

// A user's pod has the annotation with which the provider marks copies of terminating pods. It must not be taken for
// such a copy: its deletion has its own 10 s.
func TestACopiedTerminatingAnnotationIsIgnored(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(container("app"))
		pod.Annotations = map[string]string{"virtualkubelet.kubegrace.dev/terminating": "true"}
		b.create(pod)
		b.deleteWithGrace(pod, 10)
		wait(time.Minute)
		require.Equal(b, []stop{{id: "uid/app", timeout: 10, at: 0}}, b.stops())
	})
}
