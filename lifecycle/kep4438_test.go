//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A sidecar that exits before its turn is restarted each time. In its turn it is stopped with the
// remaining grace period, without running its hook again (KEP-4438).
func TestSidecarRestartsEachTimeItExits(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", scriptedExec(), lifecycletest.Script{ExitAfterTerm: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		ids := []string{"proxy", "proxy-2", "proxy-3", "proxy-4"}
		for i, id := range ids[:3] {
			<-time.After(3 * time.Second)
			b.rt.Exit(id)
			again, left := termination.ShouldRestart("proxy")
			require.True(b, again, id)
			require.Equal(b, 60*time.Second-b.elapsed(), left)
			require.NoError(b, b.startContainer("proxy", ids[i+1], lifecycletest.Script{ExitAfterTerm: time.Second}))
		}
		<-termination.Done()
		b.requireStop("proxy-4", 40, 20*time.Second)
		require.Len(b, b.rt.Execs(), 1)
		require.Equal(b, lifecycle.OutcomeGraceful, termination.Result().Outcome())
		proxies := termination.Result().Containers[1:]
		require.Equal(b, lifecycle.HookCompleted, proxies[0].Hook.Outcome, "the hook of the first run")
		require.Equal(b, lifecycle.HookSkipped, proxies[1].Hook.Outcome, "the run that was listed next")
	})
}

// A sidecar that KillContainer stops, for example after a failed liveness probe, is stopped at once,
// restarted, and stopped again in its turn.
func TestSidecarKilledDuringATerminationIsRestarted(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", scriptedExec(), lifecycletest.Script{ExitAfterTerm: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(2 * time.Second)
		_, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "proxy", ID: "proxy"},
			lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(5))})
		require.NoError(b, err)
		b.requireStop("proxy", 5, 2*time.Second)
		again, left := termination.ShouldRestart("proxy")
		require.True(b, again)
		require.Equal(b, 57*time.Second, left)
		require.NoError(b, b.startContainer("proxy", "proxy-2", lifecycletest.Script{ExitAfterTerm: time.Second}))
		<-termination.Done()
		b.requireStop("proxy-2", 40, 20*time.Second)
		require.Len(b, b.rt.Execs(), 1)
		require.Equal(b, lifecycle.OutcomeGraceful, termination.Result().Outcome())
		require.Len(b, termination.Result().Containers, 3)
	})
}

// The app has ended at 4 s and nothing needs the sidecar any more. A start of it is refused, even though
// KillContainer stopped it.
func TestSidecarIsNotRestartedOnceMainContainersHaveEnded(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{IgnoreTerm: true})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 4 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		_, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "proxy", ID: "proxy"},
			lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(5))})
		require.NoError(b, err)
		again, _ := termination.ShouldRestart("proxy")
		require.False(b, again)
		require.ErrorIs(b, b.startContainer("proxy", "proxy-2", lifecycletest.Script{}), lifecycle.ErrTerminating)
		<-termination.Done()
		require.Equal(b, 5*time.Second, b.elapsed())
	})
}

// At the time at, ShouldRestart is asked about a container, while the pod with a grace period of grace
// seconds terminates.
func TestShouldRestart(t *testing.T) {
	for name, test := range map[string]struct {
		grace int64
		main  lifecycletest.Script
		of    string
		at    time.Duration
		want  bool
	}{
		"a sidecar that is waiting":         {60, lifecycletest.Script{IgnoreTerm: true}, "proxy", time.Second, true},
		"a main container":                  {60, lifecycletest.Script{IgnoreTerm: true}, "app", time.Second, false},
		"an unknown container":              {60, lifecycletest.Script{IgnoreTerm: true}, "unknown", time.Second, false},
		"a sidecar whose turn has come":     {60, lifecycletest.Script{ExitAfterTerm: time.Second}, "proxy", 2 * time.Second, false},
		"a sidecar after the deadline":      {5, lifecycletest.Script{HangStops: 1}, "proxy", 6 * time.Second, false},
		"a sidecar of a pod with 1 s":       {1, lifecycletest.Script{IgnoreTerm: true}, "proxy", 500 * time.Millisecond, false},
		"a sidecar of a pod that has ended": {5, lifecycletest.Script{}, "proxy", time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(test.grace), func(b *testBed) {
				b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
				b.addMain("app", nil, test.main)
				termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
				b.sleepUntil(test.at)
				restart, left := termination.ShouldRestart(test.of)
				require.Equal(b, test.want, restart)
				if !test.want {
					require.Zero(b, left)
				}
			})
		})
	}
}

// When a sidecar's turn comes, the context of its start ends. A container that was started anyway is
// stopped with the remaining grace period.
func TestRestartThatReturnsTooLateIsStopped(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: 5 * time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(6 * time.Second)
		err := b.Start(b.Context(), b.pod, "proxy", func(ctx context.Context) error {
			<-ctx.Done()
			require.Equal(b, lifecycle.ErrTerminating, context.Cause(ctx))
			b.sleepUntil(13 * time.Second)
			b.rt.Start(b.pod, "proxy", "proxy-2", lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
			return nil
		})
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		<-termination.Done()
		b.requireStop("proxy-2", 47, 13*time.Second)
		require.Equal(b, 15*time.Second, b.elapsed())
	})
}

// A failed restart may be retried. While one is in progress, another is refused.
func TestFailedRestartMayBeRetried(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(2 * time.Second)
		failing := lifecycletest.Script{StartErr: lifecycletest.ErrScripted}
		require.ErrorIs(b, b.startContainer("proxy", "proxy-2", failing), lifecycletest.ErrScripted)
		first := startCall(func() error {
			return b.startContainer("proxy", "proxy-3", lifecycletest.Script{StartTakes: 2 * time.Second})
		})
		require.ErrorIs(b, b.startContainer("proxy", "proxy-4", lifecycletest.Script{}), lifecycle.ErrTerminating)
		require.NoError(b, first())
		<-termination.Done()
		require.Len(b, b.rt.Exits(), 3)
	})
}
