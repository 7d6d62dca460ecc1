//go:build go1.25

package virtualkubelet_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// virtual-kubelet's callback blocks for one of two pods. The other pod's statuses are sent nevertheless. The blocked pod ends,
// but is kept until virtual-kubelet has its final status: until then DeletePod does not return NotFound.
func TestABlockingCallbackDelaysOnlyItsPod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		var mu sync.Mutex
		var sent []v1.PodPhase
		release := make(chan struct{})
		b.NotifyPods(b.Context(), func(pod *v1.Pod) {
			if pod.Name == "pod" {
				<-release
			}
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, pod.Status.Phase)
		})
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 2 * second}
		pod := podOf(container("app"))
		b.create(pod)
		b.create(podNamed("other", container("app")))
		b.deleteWithGrace(pod, 30)
		wait(9 * second)
		require.Equal(b, v1.PodRunning, sent[len(sent)-1], "of the other pod")
		require.Equal(b, v1.PodSucceeded, b.currentPod().Status.Phase)
		require.NoError(b, b.DeletePod(b.Context(), pod))

		close(release)
		synctest.Wait()
		require.Equal(b, v1.PodSucceeded, sent[len(sent)-1])
		_, err := b.GetPod(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
	})
}

// virtual-kubelet's callback blocks while 20 pods end. Close must not lose their final statuses: it waits for the callback, and
// sends them.
func TestCloseSendsTheLastStatus(t *testing.T) {
	inBubble(t, func(b *testbed) {
		var mu sync.Mutex
		last := map[types.UID]v1.PodPhase{}
		release := make(chan struct{})
		b.NotifyPods(b.Context(), func(pod *v1.Pod) {
			<-release
			mu.Lock()
			defer mu.Unlock()
			last[pod.UID] = pod.Status.Phase
		})
		for i := range 20 {
			pod := podNamed(strconv.Itoa(i), container("app"))
			b.create(pod)
			b.deleteWithGrace(pod, 30)
		}
		synctest.Wait()
		var closing sync.WaitGroup
		closing.Go(func() { require.NoError(b, b.Close(b.Context())) })
		synctest.Wait()
		close(release)
		closing.Wait()
		require.Len(b, last, 20)
		for uid, phase := range last {
			require.Equal(b, v1.PodSucceeded, phase, uid)
		}
	})
}
