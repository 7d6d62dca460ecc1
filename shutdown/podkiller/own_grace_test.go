//go:build go1.25

package podkiller_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The request of a kill has no grace period. The terminator stops the pod with the 30 s of its spec.
func TestARequestWithoutAGracePeriodUsesThatOfThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, pod := lifecycletest.NewRuntime(), webPod(30)
		rt.Start(pod, "web", "web", lifecycletest.Script{IgnoreTerm: true})
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt})
		require.NoError(t, err)
		_, err = podkiller.New(terminator, podkiller.Options{}).KillPod(t.Context(), pod, shutdown.KillRequest{})
		require.NoError(t, err)
		require.EqualValues(t, 30, rt.Stops()[0].TimeoutSeconds)
		require.NoError(t, terminator.Close(t.Context()))
	})
}

// The request of a kill has no grace period. The timeout of a timed killer is one and a half times the 60 s of the pod's spec.
func TestATimedKillWithoutAGracePeriodUsesThatOfThePod(t *testing.T) {
	withTimedKiller(t, shutdowntest.Behaviour{Hangs: true}, func(t *testing.T, k *podkiller.TimedKiller, inner *shutdowntest.Killer, _ *recorder) {
		began := time.Now()
		_, err := k.KillPod(t.Context(), webPod(60), shutdown.KillRequest{})
		require.Error(t, err)
		require.Equal(t, (60+30)*time.Second, time.Since(began))
		inner.Release()
	})
}

// The outcomes of shutdowntest.Killer are those of package lifecycle. The pod slow takes longer than its grace period of 30 s.
func TestTheFakeKillerUsesOutcomesOfLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		killer := &shutdowntest.Killer{Pods: map[string]shutdowntest.Behaviour{"slow": {Takes: time.Minute}}}
		for name, want := range map[string]lifecycle.Outcome{"quick": lifecycle.OutcomeGraceful, "slow": lifecycle.OutcomeGraceExceeded} {
			result, err := killer.KillPod(t.Context(), shutdowntest.Pod(name, 0, 30), shutdown.KillRequest{})
			require.NoError(t, err)
			require.Equal(t, string(want), result.Outcome)
		}
	})
}
