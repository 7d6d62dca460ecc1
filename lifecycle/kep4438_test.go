//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A pod with the main container app and the sidecar proxy is terminated. ShouldRestart is true only for the sidecar, and only
// before the deadline while app, which may need the sidecar, is still being stopped.
func TestShouldRestart(t *testing.T) {
	var (
		runsUntilKilled     = lifecycletest.Script{IgnoreTerm: true}
		exitsAfter1s        = lifecycletest.Script{ExitAfterTerm: time.Second}
		exitsAtOnce         = lifecycletest.Script{}
		runsPastTheDeadline = lifecycletest.Script{HangStops: 1} // its first StopContainer call hangs
	)
	for name, test := range map[string]struct {
		grace     int64 // of the pod
		app       lifecycletest.Script
		container string        // for which ShouldRestart is called
		at        time.Duration // when it is called
		want      bool
	}{
		"a sidecar that is waiting for app":        {grace: 60, app: runsUntilKilled, container: "proxy", at: time.Second, want: true},
		"a main container":                         {grace: 60, app: runsUntilKilled, container: "app", at: time.Second, want: false},
		"an unknown container":                     {grace: 60, app: runsUntilKilled, container: "unknown", at: time.Second, want: false},
		"a sidecar after the end of app":           {grace: 60, app: exitsAfter1s, container: "proxy", at: 2 * time.Second, want: false},
		"a sidecar after the deadline":             {grace: 5, app: runsPastTheDeadline, container: "proxy", at: 6 * time.Second, want: false},
		"a sidecar for which 0.5 s is too short":   {grace: 1, app: runsUntilKilled, container: "proxy", at: 500 * time.Millisecond, want: false},
		"a sidecar of a pod that has ended before": {grace: 5, app: exitsAtOnce, container: "proxy", at: time.Minute, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(test.grace), func(b *testBed) {
				b.addSidecar("proxy", lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
				b.addMain("app", test.app)
				termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
				b.sleepUntil(test.at)
				restart, timeLeft := termination.ShouldRestart(test.container)
				require.Equal(b, test.want, restart)
				if !test.want {
					require.Zero(b, timeLeft)
				}
			})
		})
	}
}

// A request that names its containers stops only these. A sidecar that started again would be a new run, which nobody would
// stop: it must not start. After a request without names, the termination stops all that the runtime lists, so the sidecar may
// start again.
func TestASidecarThatARequestNamesIsNotRestarted(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		proxy := b.addSidecar("proxy", lifecycletest.Script{})
		app := b.addMain("app", lifecycletest.Script{ExitAfterTerm: 10 * time.Second})

		// A request with names. The sidecar exits.
		termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{app, proxy}})
		b.sleepUntil(time.Second)
		b.rt.Exit("proxy")
		restart, _ := termination.ShouldRestart("proxy")
		require.False(b, restart)
		require.ErrorIs(b, b.startContainer("proxy", "proxy-2", lifecycletest.Script{}), lifecycle.ErrTerminating)

		// A request without names. The sidecar is started again, and stopped after app.
		b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
		b.sleepUntil(2 * time.Second)
		restart, _ = termination.ShouldRestart("proxy")
		require.True(b, restart)
		require.NoError(b, b.startContainer("proxy", "proxy-2", lifecycletest.Script{}))
		_, err := termination.Wait(b.Context())
		require.NoError(b, err)
		running, err := b.rt.Running(b.Context(), b.pod)
		require.NoError(b, err)
		require.Empty(b, running)
	})
}
