package virtualkubelet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
)

func TestARuntimeThatFailsIsTriedAgain(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{FailStops: 4}
		pod := podOf(running("app"))
		b.create(pod)
		b.remove(pod, 30)
		wait(0)
		require.Zero(b, b.last().at)
		require.NotNil(b, b.last().pod.Status.ContainerStatuses[0].State.Running, "whether it runs is not known")

		err := b.DeletePod(b.Context(), pod)
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.ErrorContains(b, err, `failed to end pod ns/pod: failed to stop container "app" (id="uid/app")`)
		wait(second)
		require.Error(b, b.DeletePod(b.Context(), pod))
		wait(0)
		require.Equal(b, []stop{{"uid/app", 30, 0}, {"uid/app", 0, 0}, {"uid/app", 2, 0}, {"uid/app", 0, 0}, {"uid/app", 2, second}}, b.stops())
		require.Len(b, b.rt.Execs(), 1, "the hook runs once")
		require.Equal(b, second, b.last().at)
		require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
	})
}

func TestAStuckContainerThatExitsAfterAll(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.rt.scripts["app"] = lifecycletest.Script{HangStops: -1, ExitAfter: time.Hour}
		pod := podOf(plain("app"))
		b.create(pod)
		result, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: 10})
		require.ErrorContains(b, err, "silent")
		require.Equal(b, "RuntimeStuck", result.Outcome)
		require.Nil(b, result.Status)
		require.Equal(b, 20*second, b.at(), "the grace and twice the slack")
		wait(time.Hour)
		require.Equal(b, time.Hour, b.last().at)
		require.Equal(b, v1.PodSucceeded, b.last().pod.Status.Phase)
	})
}
