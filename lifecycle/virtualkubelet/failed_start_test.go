//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A pod is deleted with a grace period of 10 s while its start is in progress. The start ignores its context and returns at
// 20 s. Until then the pod has not ended: DeletePod would return an error for an ended pod. Then its container is killed at
// once, because the deadline of 10 s has passed.
func TestAStartThatIgnoresItsContextIsAwaitedAndStopped(t *testing.T) {
	for kind, change := range runtimeKinds() {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.beforeStart = func(context.Context, string) error {
					<-time.After(20 * second)
					return nil
				}
				pod := podOf(plain("app"))
				b.create(pod)
				b.deletePod(pod, 10)
				wait(15 * second)
				require.NoError(b, b.DeletePod(b.Context(), pod), "the pod is kept, because its start is in progress: a deleted pod that has ended is NotFound")
				require.Equal(b, v1.PodPending, b.lastStatus().Phase)
				wait(10 * second)
				require.Len(b, b.stops(), 1)
				require.Zero(b, b.stops()[0].timeout)
				require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
				require.EqualValues(b, 137, terminated(b, b.lastStatus(), "app").ExitCode)
			}, change)
		})
	}
}

// A deletion cancels a start, which returns an error. If its container does not run, the pod has ended. In the case "running"
// the test has started the container all the same, and each StopContainer fails. The termination gives up, and the
// pod has not ended until the container exits.
func TestACancelledStartMayHaveStartedItsContainer(t *testing.T) {
	for name, runs := range map[string]bool{"not running": false, "running": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.beforeStart = func(ctx context.Context, _ string) error {
					<-ctx.Done()
					return errors.New("cancelled")
				}
				pod := podOf(plain("app"))
				if runs {
					b.rt.Start(pod, "app", "uid/app", lifecycletest.Script{FailStops: -1}) // each stop fails
				}
				b.create(pod)
				b.deletePod(pod, 10)
				wait(10 * time.Minute)
				if !runs {
					require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
					return
				}
				require.NotContains(b, []v1.PodPhase{v1.PodSucceeded, v1.PodFailed}, b.lastStatus().Phase)
				require.ErrorContains(b, b.DeletePod(b.Context(), pod), "failed to stop pod ns/pod")
				b.rt.Exit("uid/app")
				wait(10 * second)
				require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
				require.Equal(b, "ContainerStatusUnknown", terminated(b, b.lastStatus(), "app").Reason)
			})
		})
	}
}

// The second container of a pod with restart policy Never cannot be started. It ends with the reason StartError, the first
// container is stopped, and the pod fails. The provider keeps the pod until it is deleted.
func TestAPodThatCannotStartFails(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.beforeStart = func(_ context.Context, name string) error {
			if name == "app" {
				return errors.New("no such image")
			}
			return nil
		}
		pod := podOf(plain("first"), plain("app"))
		b.create(pod)
		status := b.lastStatus()
		require.Equal(b, v1.PodFailed, status.Phase)
		app := terminated(b, status, "app")
		require.Equal(b, "StartError", app.Reason)
		require.Equal(b, int32(128), app.ExitCode, "the kubelet's for a container that could not be started")
		require.Contains(b, app.Message, "no such image")
		require.Equal(b, []stop{{id: "uid/first", timeout: 30, at: 0}}, b.stops())

		_, err := b.GetPod(b.Context(), "ns", "pod")
		require.NoError(b, err, "the pod is kept until it is deleted")
		b.deletePod(pod, 30)
		wait(0)
		_, err = b.GetPod(b.Context(), "ns", "pod")
		require.True(b, errdefs.IsNotFound(err))
	})
}

// The init container exits with 3 and may not restart. The pod fails with that exit code, and the regular
// container never starts.
func TestAFailedInitContainerFailsThePod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["init"] = lifecycletest.Script{ExitAfter: second}
		b.rt.codes["init"] = 3
		pod := podOf(plain("app"))
		pod.Spec.InitContainers = []v1.Container{plain("init")}
		b.create(pod)
		wait(second)
		status := b.lastStatus()
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Equal(b, int32(3), terminated(b, status, "init").ExitCode)
		require.Equal(b, "Error", terminated(b, status, "init").Reason)
		require.False(b, status.InitContainerStatuses[0].Ready)
	})
}

// The postStart hook of a pod's only container fails. The container is killed, with the kubelet's event, and the pod fails.
func TestAFailedPostStartHookFailsThePod(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.scripts["app"] = lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) { return nil, errors.New("no") }}
		b.rt.codes["app"] = 128 + 15 // SIGTERM
		app := withExecHook("app")
		app.Lifecycle = &v1.Lifecycle{PostStart: app.Lifecycle.PreStop}
		b.create(podOf(app))
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
		require.Equal(b, "FailedPostStartHook", b.events.All()[0].Reason)
	})
}
