//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// These tests tell what happens when a runtime does not do as it is told. They are the ones to read
// first.

// StopContainer fails: it is called again, with what is left of the grace period.
func TestAStopThatFails(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: 2})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.Equal(b, []stopCall{{30, 0}, {30, 100}, {30, 300}}, b.stopCalls("app"))
		b.requireEvents("Killing", "FailedKillPod")
	})
}

// StopContainer returns before the container has ended: the list still has it, so it is called again,
// and the container has not ended before the list lacks it.
func TestAStopThatReturnsEarly(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second, StopReturnsEarly: true})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.False(b, b.rt.Exits()[0].At.After(time.Now()))
		require.Equal(b, []stopCall{{30, 0}, {30, 100}, {30, 300}, {30, 700}, {29, 1500}, {28, 2500}, {27, 3500}}, b.stopCalls("app"))
	})
}

// StopContainer does nothing and says that all is well: the list still has the container, so it is
// called again.
func TestAStopThatIsLost(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.Equal(b, []stopCall{{30, 100}}, b.stopCalls("app"), "the second call")
		require.Equal(b, 1100*time.Millisecond, b.elapsed())
	}, func(o *lifecycle.TerminatorOptions) {
		o.Runtime = &losingRuntime{Runtime: o.Runtime.(*lifecycletest.Runtime)}
	})
}

// StopContainer never returns: 5 s after its timeout another call kills at once.
func TestAStopThatNeverReturns(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: 1, HangIgnoresContext: true})
		require.Equal(b, lifecycle.OutcomeForced, b.killPod().Outcome())
		require.Equal(b, []stopCall{{10, 0}, {0, 15000}}, b.stopCalls("app"))
	})
}

// No StopContainer ever returns: the container is given up 2 min after its deadline, and may run.
func TestARuntimeThatNeverStopsAnything(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, `failed to stop container "app" (id="app"): StopContainer has not returned after 2m10s`)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome())
		require.Equal(b, 130*time.Second, b.elapsed())
	})
}

// A sidecar exits while a main container still needs it: the agent starts it again, and it is stopped
// in its turn. Without that it is simply gone.
func TestASidecarThatExits(t *testing.T) {
	for name, restarts := range map[string]bool{"and is started again": true, "and is not": false} {
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

// The runtime lists a container that has ended: it is asked to stop until the list lacks it.
func TestAListThatIsOld(t *testing.T) {
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
