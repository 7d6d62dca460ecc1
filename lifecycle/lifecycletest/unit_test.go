//go:build go1.25

package lifecycletest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A unit stops the containers app, which takes 5 s, and web, whose first stop fails, concurrently. StopPod returns
// that error when both stops have returned. The terminator calls it again 0.1 s later. A StopPod without running
// containers, or while the runtime is away, is an error.
func TestAUnitStopsAllContainersConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start(pod, "app", "app", lifecycletest.Script{ExitAfterTerm: 5 * second})
		rt.Start(pod, "web", "web", lifecycletest.Script{FailStops: 1})
		unit := lifecycletest.Unit{Runtime: rt}
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Pods: unit})
		require.NoError(t, err)
		began := time.Now()
		result, err := terminator.KillPod(t.Context(), pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(30))})
		require.NoError(t, err)
		require.Equal(t, lifecycle.OutcomeGraceful, result.Outcome())
		require.Equal(t, 5*time.Second+100*time.Millisecond, time.Since(began))
		require.Len(t, rt.Exits(), 2)
		require.ErrorIs(t, unit.StopPod(t.Context(), pod, 1), lifecycle.ErrContainerNotFound)
		rt.Away(0, second)
		require.ErrorIs(t, unit.StopPod(t.Context(), pod, 1), lifecycletest.ErrAway)
		require.NoError(t, terminator.Close(t.Context()))
	})
}
