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

// A forced deletion removes the pod from the API server. virtual-kubelet then gets the
// pod from its provider and passes it to DeletePod.
func TestAForcedDeletionLeavesASecond(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(sleeping("app", 100))
		b.create(pod)
		b.deletePod(pod, 120)
		wait(10 * second)
		own, err := b.GetPod(b.Context(), "ns", "pod")
		require.NoError(b, err)
		require.NoError(b, b.DeletePod(b.Context(), own))
		wait(3 * second)
		require.Equal(b, []stop{{"uid/app", 2, 11 * second}}, b.stops())
		require.Equal(b, 13*second, b.last().at)
	})
}

func TestAPodThatVanishedHasItsOwnGrace(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		b.create(podOf(plain("app")))
		for range 2 { // the second has the mark, and changes nothing
			own, err := b.GetPod(b.Context(), "ns", "pod")
			require.NoError(b, err)
			require.NoError(b, b.DeletePod(b.Context(), own))
		}
		wait(time.Minute)
		require.Equal(b, []stop{{"uid/app", 30, 0}}, b.stops())
	})
}

func TestAClockThatIsWrongCutsNoFreshDeletion(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		inBubble(t, func(b *bed) {
			b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
			pod := podOf(plain("app"))
			b.create(pod)
			require.NoError(b, b.DeletePod(b.Context(), deleted(pod, 30, time.Now().Add(skew))))
			wait(time.Minute)
			require.Equal(b, []stop{{"uid/app", 30, 0}}, b.stops())
		})
	}
}

func TestDeletionOfAnUnknownPod(t *testing.T) {
	inBubble(t, func(b *bed) {
		require.True(b, errdefs.IsNotFound(b.DeletePod(b.Context(), podOf())))
		require.True(b, errdefs.IsNotFound(b.UpdatePod(b.Context(), podOf())))
		_, err := b.GetPodStatus(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
		pods, err := b.GetPods(b.Context())
		require.NoError(b, err)
		require.Empty(b, pods)
	})
}

// A pod is that of its UID. Without one it is the newest of its name, and stays that of its UID.
func TestDeletionByUID(t *testing.T) {
	for name, test := range map[string]struct {
		uid   types.UID
		stops []stop
	}{
		"of the pod":         {"2", []stop{{"2/app", 30, second}}},
		"of an earlier pod":  {"uid", nil},
		"of nobody":          {"3", nil},
		"without being told": {"", []stop{{"2/app", 30, second}}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				previous, pod := podOf(plain("app")), podOf(plain("app"))
				pod.UID = "2"
				b.create(previous)
				b.deletePod(previous, 0)
				wait(second)
				b.create(pod)
				before := len(b.stops())
				asked := deleted(pod, 30, time.Now())
				asked.UID = test.uid
				err := b.DeletePod(b.Context(), asked)
				require.Equal(b, test.stops == nil, errdefs.IsNotFound(err))
				wait(second)
				require.Equal(b, test.stops, append([]stop(nil), b.stops()[before:]...))
				if test.stops != nil {
					require.Equal(b, types.UID("2"), b.last().pod.UID)
				}
			})
		})
	}
}

func TestADeletionWithoutListenerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := virtualkubelet.New(virtualkubelet.Options{Runtime: newScriptedRuntime()})
		require.NoError(t, err)
		require.NoError(t, p.CreatePod(t.Context(), podOf(plain("app"))))
		synctest.Wait()
		require.NoError(t, p.DeletePod(t.Context(), podOf(plain("app"))))
		synctest.Wait()
		status, err := p.GetPodStatus(t.Context(), "ns", "pod")
		require.NoError(t, err)
		require.Equal(t, v1.PodSucceeded, status.Phase)
		heard := make(chan *v1.Pod, 1)
		p.NotifyPods(t.Context(), func(pod *v1.Pod) { heard <- pod })
		require.Equal(t, *status, (<-heard).Status)
		synctest.Wait()
		_, err = p.GetPod(t.Context(), "ns", "pod")
		require.True(t, errdefs.IsNotFound(err))
		require.NoError(t, p.Close(t.Context()))
	})
}

// A mark that somebody has copied into a pod says nothing while the pod is not terminating.
func TestAMarkThatWasCopied(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
		pod := podOf(plain("app"))
		pod.Annotations = map[string]string{"virtualkubelet.kubegrace.dev/terminating": "true"}
		b.create(pod)
		b.deletePod(pod, 10)
		wait(time.Minute)
		require.Equal(b, []stop{{"uid/app", 10, 0}}, b.stops())
	})
}
