//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A sidecar is started again as often as it exits before its turn, and is stopped in its turn
// with what is left, without its hook (KEP-4438).
func TestASidecarIsStartedAgainAsOftenAsItExits(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", hooked(), lifecycletest.Script{ExitAfterTerm: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		ids := []string{"proxy", "proxy-2", "proxy-3", "proxy-4"}
		for i, id := range ids[:3] {
			<-time.After(3 * time.Second)
			b.rt.Exit(id)
			again, left := termination.ShouldRestart("proxy")
			require.True(b, again, id)
			require.Equal(b, 60*time.Second-b.at(), left)
			require.NoError(b, b.startAgain("proxy", ids[i+1], lifecycletest.Script{ExitAfterTerm: time.Second}))
		}
		<-termination.Done()
		b.requireStop("proxy-4", 40, 20*time.Second)
		require.Len(b, b.rt.Stops(), 2, "no other is stopped")
		require.Len(b, b.rt.Execs(), 1)
		require.Equal(b, lifecycle.Graceful, termination.Result().Outcome())
		require.Equal(b, lifecycle.HookCompleted, termination.Result().Containers[1].Hook.Outcome, "that of the first")
	})
}

// A sidecar that KillContainer stops before its turn, as when its liveness probe fails, is stopped
// at once and started again, and is stopped in its turn with what is left.
func TestASidecarThatIsKilledDuringATermination(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", hooked(), lifecycletest.Script{ExitAfterTerm: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(2 * time.Second)
		_, err := b.Pod(b.pod).KillContainer(b.Context(), lifecycle.Container{Name: "proxy", ID: "proxy"},
			lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(5))})
		require.NoError(b, err)
		b.requireStop("proxy", 5, 2*time.Second)
		again, left := termination.ShouldRestart("proxy")
		require.True(b, again)
		require.Equal(b, 57*time.Second, left)
		require.NoError(b, b.startAgain("proxy", "proxy-2", lifecycletest.Script{ExitAfterTerm: time.Second}))
		<-termination.Done()
		b.requireStop("proxy-2", 40, 20*time.Second)
		require.Len(b, b.rt.Execs(), 1)
		require.Equal(b, lifecycle.Graceful, termination.Result().Outcome())
		require.Len(b, termination.Result().Containers, 2)
	})
}

// A sidecar whose kill ends when its turn has come is not started again.
func TestASidecarThatIsKilledUntilItsTurn(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{IgnoreTerm: true})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 4 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		_, err := b.Pod(b.pod).KillContainer(b.Context(), lifecycle.Container{Name: "proxy", ID: "proxy"},
			lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(5))})
		require.NoError(b, err)
		again, _ := termination.ShouldRestart("proxy")
		require.False(b, again)
		require.ErrorIs(b, b.startAgain("proxy", "proxy-2", lifecycletest.Script{}), lifecycle.ErrTerminating)
		<-termination.Done()
		require.Equal(b, 5*time.Second, b.at())
	})
}
