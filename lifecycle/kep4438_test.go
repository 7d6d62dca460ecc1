//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The pod of the main container app and the sidecar proxy is terminated. ShouldRestart returns true only for
// the sidecar, and only while app, which may need it, is still being stopped before the deadline.
func TestShouldRestart(t *testing.T) {
	for name, test := range map[string]struct {
		grace int64                // of the pod
		app   lifecycletest.Script // how app ends
		of    string               // the container that ShouldRestart is asked about
		at    time.Duration        // when it is asked
		want  bool
	}{
		"a sidecar that is waiting":         {60, lifecycletest.Script{IgnoreTerm: true}, "proxy", time.Second, true},
		"a main container":                  {60, lifecycletest.Script{IgnoreTerm: true}, "app", time.Second, false},
		"an unknown container":              {60, lifecycletest.Script{IgnoreTerm: true}, "unknown", time.Second, false},
		"a sidecar whose turn has come":     {60, lifecycletest.Script{ExitAfterTerm: time.Second}, "proxy", 2 * time.Second, false}, // app ended at 1 s
		"a sidecar after the deadline":      {5, lifecycletest.Script{HangStops: 1}, "proxy", 6 * time.Second, false},
		"a sidecar of a pod with 1 s":       {1, lifecycletest.Script{IgnoreTerm: true}, "proxy", 500 * time.Millisecond, false}, // too short for a restart
		"a sidecar of a pod that has ended": {5, lifecycletest.Script{}, "proxy", time.Minute, false},
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
