//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Options.Admit refuses a pod. The pod fails with the kubelet's status and event, and its container does not start. A shutdown
// does not list the pod. DeletePod makes the provider forget it.
func TestARefusedPodFailsAndStartsNothing(t *testing.T) {
	inBubble(t, func(b *testbed) {
		pod := podOf(container("app"))
		b.create(pod)
		status := b.lastStatus()
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Equal(b, "NodeShutdown", status.Reason)
		require.Equal(b, "Pod was rejected: Pod was rejected as the node is shutting down.", status.Message)
		require.Empty(b, status.ContainerStatuses)
		require.Equal(b, "NodeShutdown", b.events.All()[0].Reason)
		require.Equal(b, "Pod was rejected as the node is shutting down.", b.events.All()[0].Message)
		require.False(b, b.rt.wasStarted("uid/app"))
		require.Empty(b, b.podsForShutdown())

		require.NoError(b, b.DeletePod(b.Context(), pod))
		synctest.Wait()
		require.True(b, errdefs.IsNotFound(b.DeletePod(b.Context(), pod)), "the pod is forgotten")
	}, func(o *virtualkubelet.Options) {
		o.Admit = func(*v1.Pod) shutdown.Admission {
			return shutdown.Admission{Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."}
		}
	})
}

// runtimeKinds returns the options for each kind of runtime: one that runs single containers, and one that runs whole pods.
func runtimeKinds() map[string]func(*virtualkubelet.Options) {
	return map[string]func(*virtualkubelet.Options){
		"containers": func(*virtualkubelet.Options) {},
		"whole pods": onFakePodRuntime(newFakePodRuntime(second)),
	}
}

// 500 pods are created, each with a start of 2 min, and after half of them a shutdown begins. A shutdown.Manager drains the
// pods with 20 s, and Admit asks the same manager. Each pod is either refused (reason NodeShutdown) or killed by the drain
// (reason Terminated): none keeps running.
func TestEachPodIsEitherRefusedOrDrained(t *testing.T) {
	const pods = 500
	for kind, options := range runtimeKinds() {
		t.Run(kind, func(t *testing.T) {
			var manager *shutdown.Manager
			inBubble(t, func(b *testbed) {
				// A manager whose host can announce a shutdown.
				host := &shutdowntest.Host{}
				var err error
				manager, err = shutdown.NewManager(shutdown.Options{
					Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 20 * second}},
					ListPods: b.Pods, Killer: b, Source: host,
				})
				require.NoError(b, err)
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan error, 1)
				go func() { ended <- manager.Run(ctx) }()
				<-manager.Ready()

				// The creations race with the announcement.
				b.rt.startsTake(2 * time.Minute)
				var racing sync.WaitGroup
				for i := range pods {
					pod := podNamed(strconv.Itoa(i), container("app"))
					racing.Go(func() { assert.NoError(b, b.CreatePod(b.Context(), pod)) })
					if i == pods/2 {
						racing.Go(func() { host.Announce(source.Event{}) })
					}
				}
				racing.Wait()
				wait(3 * time.Minute) // more than the 2 min of a start and the 20 s of the drain
				reasons := map[string]int{}
				for i := range pods {
					reasons[b.podStatus(strconv.Itoa(i)).Reason]++
				}
				require.Equal(b, pods, reasons["Terminated"]+reasons["NodeShutdown"], "%v", reasons)
				cancel()
				require.NoError(b, <-ended)
			}, options, func(o *virtualkubelet.Options) {
				o.Admit = func(pod *v1.Pod) shutdown.Admission { return manager.Admit(pod) }
			})
		})
	}
}

// 1,000 pods are created and killed at once, before or after Admit is called for them. A pod for which Admit was not
// called must not have started.
func TestAPodKilledAtOnceDoesNotStartWithoutAdmission(t *testing.T) {
	var admitted sync.Map
	inBubble(t, func(b *testbed) {
		var racing sync.WaitGroup
		for i := range 1000 {
			pod := podNamed(fmt.Sprint("pod-", i), container("app"))
			racing.Go(func() {
				require.NoError(b, b.CreatePod(b.Context(), pod))
				_, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
				require.NoError(b, err)
			})
		}
		racing.Wait()
		for i := range 1000 {
			uid := types.UID(fmt.Sprint("pod-", i))
			_, wasAdmitted := admitted.Load(uid)
			require.True(b, wasAdmitted || !b.rt.wasStarted(string(uid)+"/app"), uid)
		}
	}, func(o *virtualkubelet.Options) {
		o.Admit = func(pod *v1.Pod) shutdown.Admission {
			admitted.Store(pod.UID, true)
			return shutdown.Admission{Admit: true}
		}
	})
}
