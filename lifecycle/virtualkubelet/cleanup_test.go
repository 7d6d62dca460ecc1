//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// endRecorder records the calls of Options.ContainerEnded.
type endRecorder struct {
	failures int // how many of the first calls fail

	mu   sync.Mutex
	ends []string // "TIME CONTAINER ID"; TIME is the time since asContainerEnded
}

// asContainerEnded makes Options.ContainerEnded record its calls. It is an option for inBubble and newProvider.
func (r *endRecorder) asContainerEnded(o *virtualkubelet.Options) {
	began := time.Now()
	o.ContainerEnded = func(_ context.Context, _ *v1.Pod, c *v1.Container, id string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ends = append(r.ends, fmt.Sprintf("%v %s %s", time.Since(began), c.Name, id))
		if len(r.ends) <= r.failures {
			return errors.New("busy")
		}
		return nil
	}
}

// recorded returns the calls so far.
func (r *endRecorder) recorded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ends)
}

// The container exits at 1 s. ContainerEnded is called at 1 s and fails, after a pause of 10 s at 11 s and fails, and after a
// pause of 20 s at 31 s. Only then has the pod ended.
func TestContainerEndedIsRepeatedUntilItSucceeds(t *testing.T) {
	ends := &endRecorder{failures: 2}
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		b.create(podOf(container("app")))
		wait(30 * second)
		require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
		wait(2 * second)
		require.Equal(b, []string{"1s app uid/app", "11s app uid/app", "31s app uid/app"}, ends.recorded())
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Equal(b, 31*second, b.lastNotification().at)
	}, ends.asContainerEnded)
}

// A container exits 1 s after each start. Its runs begin at 0 s and, without a back-off, at 1 s; the third start is due at
// 12 s, after a back-off of 10 s. The pod is deleted during this back-off, or while the third start hangs. ContainerEnded has
// then been called once for each run, and the pod ends.
func TestContainerEndedIsCalledOnceForEachRun(t *testing.T) {
	for name, deletedAt := range map[string]time.Duration{
		"deleted during the back-off":       3 * second,
		"deleted during a start that hangs": 23 * second,
	} {
		t.Run(name, func(t *testing.T) {
			ends := &endRecorder{}
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
				b.rt.beforeStart = func(ctx context.Context, _ string) error {
					if b.elapsed() < 3*second {
						return nil
					}
					<-ctx.Done() // the third start hangs
					return errors.New("no device")
				}
				pod := restartingPod(container("app"))
				b.create(pod)
				wait(deletedAt)
				b.deleteWithGrace(pod, 30)
				wait(second)
				require.Equal(b, []string{"1s app uid/app", "2s app uid/app#1"}, ends.recorded())
				require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
			}, ends.asContainerEnded)
		})
	}
}

// A new provider adopts a pod whose container one has already ended, as the pod's status says. ContainerEnded is called for one at
// 0 s, and fails. Container two exits at 5 s, and the call for it succeeds. The call for one is repeated at 10 s and succeeds. Only
// then has the pod ended.
func TestContainerEndedForAContainerAdoptedAfterItsEnd(t *testing.T) {
	ends := &endRecorder{failures: 1}
	inBubble(t, func(b *testbed) {
		b.create(podOf(container("one"), container("two")))
		adopted := virtualkubelet.Adopted{Pod: b.currentPod()}
		adopted.Pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed"}}
		require.NoError(b, b.Close(b.Context()))
		b.rt.Exit("uid/one")

		b.Provider = b.newProvider(ends.asContainerEnded)
		require.NoError(b, b.Adopt(b.Context(), adopted))
		wait(5 * second)
		b.rt.Exit("uid/two")
		wait(4 * second)
		require.Equal(b, []string{"0s one uid/one", "5s two uid/two"}, ends.recorded())
		require.NotEqual(b, v1.PodSucceeded, b.lastStatus().Phase)

		wait(2 * second)
		require.Equal(b, "10s one uid/one", ends.recorded()[2])
		require.Equal(b, v1.PodSucceeded, b.lastStatus().Phase)
		require.Equal(b, "virtual-kubelet://uid/one", b.lastStatus().ContainerStatuses[0].ContainerID)
		require.Equal(b, 10*second, b.lastNotification().at)
	})
}

// A runtime may keep the ID of a container when it restarts it. The first run lasts from 0 s to 1 s, the second, without a
// back-off, from 1 s to 2 s. The third begins at 12 s, after a back-off of 10 s, and does not exit by itself. The exit of
// an earlier run must not be taken for its exit: the third run keeps running until its pod is deleted.
func TestARestartedContainerMayReuseItsID(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{ExitAfter: second}
		pod := restartingPod(container("app"))
		b.create(pod)
		wait(2 * time.Second)
		b.rt.change(func() { b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true} })
		wait(10 * second)
		require.NotNil(b, b.lastStatus().ContainerStatuses[0].State.Running)
		b.deleteWithGrace(pod, 5)
		wait(20 * second)
		require.Equal(b, []stop{{id: "uid/app", timeout: 5, at: 12 * second}}, b.stops())
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
	}, func(o *virtualkubelet.Options) {
		o.Runtime = &sameIDRuntime{o.Runtime.(*scriptedRuntime)} // it wraps the testbed's runtime
	})
}

// sameIDRuntime is a runtime whose containers keep their ID when they restart.
type sameIDRuntime struct{ *scriptedRuntime }

func (r *sameIDRuntime) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	r.started.Clear() // then the ID of the first run is free again
	return r.scriptedRuntime.StartContainer(ctx, pod, c)
}
