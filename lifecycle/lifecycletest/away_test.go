//go:build go1.25

package lifecycletest_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The runtime is away from 1 s to 3 s. A StopContainer call that begins earlier fails at 1 s, and a command during the absence
// fails at once. A call at 3 s works again. It returns at 5 s, because the container got its signal at 0 s, and takes 5 s to exit.
func TestAwayMakesCallsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start(pod, "app", "app", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		rt.Away(time.Second, 3*time.Second)
		began := time.Now()
		require.ErrorIs(t, rt.StopContainer(t.Context(), "app", 30), lifecycletest.ErrAway)
		require.Equal(t, time.Second, time.Since(began))
		_, err := rt.RunInContainer(t.Context(), "app", []string{"true"}, noTimeout)
		require.ErrorIs(t, err, lifecycletest.ErrAway)

		<-time.After(2 * time.Second)
		require.NoError(t, rt.StopContainer(t.Context(), "app", 30))
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// A container that obeys its stop signal has its own exit code, 3. One that ignores the signal is killed, and has 137.
func TestExitCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start(pod, "app", "obedient", lifecycletest.Script{ExitCode: 3})
		rt.Start(pod, "web", "stubborn", lifecycletest.Script{ExitCode: 3, IgnoreTerm: true})
		_, exited := rt.ExitCode("obedient")
		require.False(t, exited)
		require.NoError(t, rt.StopContainer(t.Context(), "obedient", math.MaxInt64), "the maximum timeout does not overflow")
		require.NoError(t, rt.StopContainer(t.Context(), "stubborn", 2))
		for id, want := range map[string]int32{"obedient": 3, "stubborn": 137} {
			code, exited := rt.ExitCode(id)
			require.True(t, exited)
			require.Equal(t, want, code)
		}
	})
}
