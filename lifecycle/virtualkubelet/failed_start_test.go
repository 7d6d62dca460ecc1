//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A pod is deleted with a grace period of 10 s while its start is in progress. The start ignores its context and returns at
// 20 s. Until then the pod has not ended. Then its container is killed at once, because the deadline has passed.
func TestAStartThatIgnoresItsContextIsAwaitedAndStopped(t *testing.T) {
	for kind, change := range runtimeKinds() {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.beforeStart = func(context.Context, string) error {
					<-time.After(20 * second)
					return nil
				}
				pod := podOf(container("app"))
				b.create(pod)
				b.deleteWithGrace(pod, 10)
				wait(15 * second)
				require.NoError(b, b.DeletePod(b.Context(), pod), "a deleted pod that has ended would be NotFound")
				require.Equal(b, v1.PodPending, b.lastStatus().Phase)

				wait(10 * second)
				require.Len(b, b.stops(), 1)
				require.Zero(b, b.stops()[0].timeout)
				require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
				require.EqualValues(b, 137, terminatedState(b, b.lastStatus(), "app").ExitCode)
			}, change)
		})
	}
}

// startFailsWhenCancelled lets each start fail when its context ends.
func (b *testbed) startFailsWhenCancelled() {
	b.rt.beforeStart = func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return errors.New("cancelled")
	}
}

// A deletion cancels a start, which returns an error. No container runs, so the pod has ended.
func TestACancelledStartEndsItsPod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.startFailsWhenCancelled()
		pod := podOf(container("app"))
		b.create(pod)
		b.deleteWithGrace(pod, 10)
		wait(second)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
	})
}

// A deletion cancels a start, which returns an error although its container runs. Each StopContainer call fails, so the
// termination gives up. The pod has not ended until the container exits.
func TestACancelledStartMayHaveStartedItsContainer(t *testing.T) {
	const allStops = -1
	inBubble(t, func(b *testbed) {
		b.startFailsWhenCancelled()
		pod := podOf(container("app"))
		b.rt.Start(pod, "app", "uid/app", lifecycletest.Script{FailStops: allStops})
		b.create(pod)
		b.deleteWithGrace(pod, 10)
		wait(10 * time.Minute)
		require.NotContains(b, []v1.PodPhase{v1.PodSucceeded, v1.PodFailed}, b.lastStatus().Phase)
		require.ErrorContains(b, b.DeletePod(b.Context(), pod), "failed to stop pod ns/pod")

		b.rt.Exit("uid/app")
		wait(10 * second)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		require.Equal(b, "ContainerStatusUnknown", terminatedState(b, b.lastStatus(), "app").Reason)
	})
}

// The second container of a pod with restart policy Never cannot be started. It ends with the kubelet's reason and exit code, the
// first container is stopped, and the pod fails. The provider keeps the pod until it is deleted.
func TestAPodThatCannotStartFails(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.beforeStart = func(_ context.Context, name string) error {
			if name == "second" {
				return errors.New("no such image")
			}
			return nil
		}
		pod := podOf(container("first"), container("second"))
		b.create(pod)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		end := terminatedState(b, b.lastStatus(), "second")
		require.Equal(b, "StartError", end.Reason)
		require.EqualValues(b, 128, end.ExitCode)
		require.Contains(b, end.Message, "no such image")
		require.Equal(b, []stop{{id: "uid/first", timeout: 30, at: 0}}, b.stops())

		_, err := b.GetPod(b.Context(), "ns", "pod")
		require.NoError(b, err)
		b.deleteWithGrace(pod, 30)
		synctest.Wait()
		_, err = b.GetPod(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
	})
}

// The init container exits with 3 and may not restart. The pod fails with that exit code, and the regular container never starts.
func TestAFailedInitContainerFailsThePod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: second}
		b.rt.exitCodes["init"] = 3
		pod := podOf(container("app"))
		pod.Spec.InitContainers = []v1.Container{container("init")}
		b.create(pod)
		wait(second)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		require.EqualValues(b, 3, terminatedState(b, b.lastStatus(), "init").ExitCode)
		require.Equal(b, "Error", terminatedState(b, b.lastStatus(), "init").Reason)
		require.False(b, b.lastStatus().InitContainerStatuses[0].Ready)
		require.False(b, b.rt.wasStarted("uid/app"))
	})
}

// The postStart hook of a pod's only container fails. The container is killed, with the kubelet's event, and the pod fails.
func TestAFailedPostStartHookFailsThePod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) { return nil, errors.New("no") }}
		b.rt.exitCodes["app"] = 128 + 15 // SIGTERM
		app := container("app")
		app.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"warm-up"}}}}
		b.create(podOf(app))
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		require.Equal(b, "FailedPostStartHook", b.events.All()[0].Reason)
	})
}
