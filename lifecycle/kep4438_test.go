//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A pod with the main container app and the sidecar proxy is terminated. ShouldRestart returns true only for the sidecar, and
// only before the deadline while app, which may need the sidecar, is still being stopped. HangStops makes app's first
// StopContainer call hang, so that app is still being stopped after the deadline.
func TestShouldRestart(t *testing.T) {
	for name, test := range map[string]struct {
		grace int64                // of the pod
		app   lifecycletest.Script // how app ends
		of    string               // the container for which ShouldRestart is called
		at    time.Duration        // when it is called
		want  bool
	}{
		"a sidecar that is waiting":         {grace: 60, app: lifecycletest.Script{IgnoreTerm: true}, of: "proxy", at: time.Second, want: true},
		"a main container":                  {grace: 60, app: lifecycletest.Script{IgnoreTerm: true}, of: "app", at: time.Second, want: false},
		"an unknown container":              {grace: 60, app: lifecycletest.Script{IgnoreTerm: true}, of: "unknown", at: time.Second, want: false},
		"a sidecar whose turn has come":     {grace: 60, app: lifecycletest.Script{ExitAfterTerm: time.Second}, of: "proxy", at: 2 * time.Second, want: false}, // app ended at 1 s
		"a sidecar after the deadline":      {grace: 5, app: lifecycletest.Script{HangStops: 1}, of: "proxy", at: 6 * time.Second, want: false},
		"a sidecar of a pod with 1 s":       {grace: 1, app: lifecycletest.Script{IgnoreTerm: true}, of: "proxy", at: 500 * time.Millisecond, want: false}, // too short for a restart
		"a sidecar of a pod that has ended": {grace: 5, app: lifecycletest.Script{}, of: "proxy", at: time.Minute, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(test.grace), func(b *testBed) {
				b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
				b.addMain("app", nil, test.app)
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

// The request names its containers, so that nothing else is stopped: a sidecar that was started again would run on. It may not
// be, until another request has the runtime list the containers.
func TestASidecarThatARequestNamesIsNotRestarted(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		proxy := b.addSidecar("proxy", nil, lifecycletest.Script{})
		app := b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
		termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{app, proxy}})
		b.sleepUntil(time.Second)
		b.rt.Exit("proxy")
		restart, _ := termination.ShouldRestart("proxy")
		require.False(b, restart)
		require.ErrorIs(b, b.startContainer("proxy", "proxy-2", lifecycletest.Script{}), lifecycle.ErrTerminating)
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
