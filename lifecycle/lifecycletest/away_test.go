//go:build go1.25

package lifecycletest_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The runtime is away from 1 to 3 s. A stop in progress fails at 1 s and calls at 1 s fail at once, but the
// signal that was sent takes effect, so the container ends at 5 s.
func TestAwayMakesCallsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start(pod, "app", "app", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		rt.Away(time.Second, 3*time.Second)
		began := time.Now()
		require.ErrorIs(t, rt.StopContainer(t.Context(), "app", 30), lifecycletest.ErrAway)
		require.Equal(t, time.Second, time.Since(began), "the running call fails when the period starts")
		_, err := rt.RunInContainer(t.Context(), "app", nil, 0)
		require.ErrorIs(t, err, lifecycletest.ErrAway)
		<-time.After(2 * time.Second)
		require.NoError(t, rt.StopContainer(t.Context(), "app", 30))
		require.Equal(t, 5*time.Second, time.Since(began), "the container received the first signal")
	})
}

// A container that obeys its signal has its own exit code; one that is killed has 137.
func TestExitCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start(pod, "app", "app", lifecycletest.Script{ExitCode: 3})
		rt.Start(pod, "stubborn", "stubborn", lifecycletest.Script{ExitCode: 3, IgnoreTerm: true})
		_, exited := rt.ExitCode("app")
		require.False(t, exited)
		require.NoError(t, rt.StopContainer(t.Context(), "app", math.MaxInt64), "the maximum timeout does not overflow")
		require.NoError(t, rt.StopContainer(t.Context(), "stubborn", 2))
		for id, want := range map[string]int32{"app": 3, "stubborn": 137} {
			code, exited := rt.ExitCode(id)
			require.True(t, exited)
			require.Equal(t, want, code)
		}
	})
}

// The largest timeout must not overflow into one that has passed, which would kill at once.
func TestTheMaximumTimeoutDoesNotKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start(pod, "app", "app", lifecycletest.Script{IgnoreTerm: true, ExitAfter: time.Hour})
		require.NoError(t, rt.StopContainer(t.Context(), "app", math.MaxInt64))
		require.Equal(t, lifecycletest.ByItself, rt.Exits()[0].By)
	})
}

// StartContainer takes as long as the script says. It ends early if its context ends, which
// is after cancel (0: never), unless the script ignores that. The container runs only if there is no error.
func TestStartContainerFollowsTheScript(t *testing.T) {
	for name, test := range map[string]struct {
		script lifecycletest.Script
		cancel time.Duration
		took   time.Duration
		err    error
	}{
		"immediate":                 {},
		"slow":                      {script: lifecycletest.Script{StartTakes: 3 * time.Second}, took: 3 * time.Second},
		"slow, cancelled":           {script: lifecycletest.Script{StartTakes: 3 * time.Second}, cancel: time.Second, took: time.Second, err: context.DeadlineExceeded},
		"slow, ignores its context": {script: lifecycletest.Script{StartTakes: 3 * time.Second, StartIgnoresContext: true}, cancel: time.Second, took: 3 * time.Second},
		"cancelled after its end":   {script: lifecycletest.Script{StartTakes: time.Second}, cancel: 2 * time.Second, took: time.Second},
		"cancelled immediately":     {script: lifecycletest.Script{StartTakes: time.Second}, cancel: time.Nanosecond, took: time.Nanosecond, err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := lifecycletest.NewRuntime()
				ctx, began := t.Context(), time.Now()
				if test.cancel > 0 {
					timed, cancel := context.WithTimeout(ctx, test.cancel)
					defer cancel()
					ctx = timed
				}
				err := rt.StartContainer(ctx, pod, "app", "app", test.script)
				require.Equal(t, test.took, time.Since(began))
				require.ErrorIs(t, err, test.err)
				running, listErr := rt.Running(t.Context(), pod)
				require.NoError(t, listErr)
				require.Equal(t, err == nil, len(running) == 1)
			})
		})
	}
}
