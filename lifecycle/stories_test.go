//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// These tests show what happens when a runtime misbehaves. Read them first.

// A failed StopContainer is repeated with the remaining grace period.
func TestStopContainerFails(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: 2})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.Equal(b, []stopCall{{30, 0}, {30, 100}, {30, 300}}, b.stopCalls("app"))
		b.requireEvents("Killing", "FailedKillPod")
	})
}

// StopContainer returns before the container has ended. The container is still listed, so StopContainer
// is repeated until the list lacks it.
func TestStopContainerReturnsEarly(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second, StopReturnsEarly: true})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.False(b, b.rt.Exits()[0].At.After(time.Now()))
		require.Equal(b, []stopCall{{30, 0}, {30, 100}, {30, 300}, {30, 700}, {29, 1500}, {28, 2500}, {27, 3500}}, b.stopCalls("app"))
	})
}

// The first StopContainer call is lost: it does nothing and returns nil. The container is still listed, so
// StopContainer is called again.
func TestStopContainerIsLost(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.Equal(b, []stopCall{{30, 100}}, b.stopCalls("app"), "only the second call reaches the runtime")
		require.Equal(b, 1100*time.Millisecond, b.elapsed())
	}, func(o *lifecycle.TerminatorOptions) {
		o.Runtime = &losingRuntime{Runtime: o.Runtime.(*lifecycletest.Runtime)}
	})
}

// StopContainer never returns. 5 s after its timeout, another call kills at once.
func TestStopContainerNeverReturns(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: 1, HangIgnoresContext: true})
		require.Equal(b, lifecycle.OutcomeForced, b.killPod().Outcome())
		require.Equal(b, []stopCall{{10, 0}, {0, 15000}}, b.stopCalls("app"))
	})
}

// No StopContainer call ever returns. The container is given up 2 minutes after its deadline, and may
// still be running.
func TestRuntimeThatNeverStopsIsGivenUp(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, `failed to stop container "app" (id="app"): StopContainer has not returned after 2m10s`)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.Equal(b, 130*time.Second, b.elapsed())
	})
}

// A sidecar exits while a main container still needs it. The agent may restart it, and it is then
// stopped in its turn.
func TestSidecarThatExitsMayBeRestarted(t *testing.T) {
	for name, restarts := range map[string]bool{"restarted": true, "not restarted": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(30), func(b *testBed) {
				b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: 2 * time.Second})
				b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
				termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
				b.sleepUntil(3 * time.Second)
				restart, left := termination.ShouldRestart("proxy")
				require.True(b, restart)
				require.Equal(b, 27*time.Second, left)
				if restarts {
					require.NoError(b, b.startContainer("proxy", "proxy-2", lifecycletest.Script{}))
				}
				result, err := termination.Wait(b.Context())
				require.NoError(b, err)
				require.True(b, result.Outcome() == lifecycle.OutcomeGraceful || result.Outcome() == lifecycle.OutcomeNotFound)
				require.Equal(b, 5*time.Second, b.elapsed())
				if restarts {
					b.requireStop("proxy-2", 25, 5*time.Second)
				}
			})
		})
	}
}

// The runtime still lists the ended container for 4 s. StopContainer is repeated until a list lacks it, and
// the result says why.
func TestStopIsRepeatedWhileAStaleListHasTheContainer(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.rt.SetLists(lifecycletest.Lists{HasEnded: true})
		time.AfterFunc(4*time.Second, func() { b.rt.SetLists(lifecycletest.Lists{}) })
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.ErrorContains(b, result.Containers[0].Err, "StopContainer returned, but the runtime still lists the container")
		require.Equal(b, 4500*time.Millisecond, b.elapsed())
	})
}
