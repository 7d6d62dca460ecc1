//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The longest grace period that the API allows must not overflow into one that has passed.
func TestLongestGracePeriods(t *testing.T) {
	inBubble(t, graceSeconds(1<<63-1), func(b *testBed) {
		b.addMain("app", sleepHandler(1<<63-1), lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Hour)
		require.True(b, termination.Deadline().After(time.Now()))
		require.True(b, b.Shorten(termination, 5))
		<-termination.Done()
		require.Equal(b, time.Hour+7*time.Second, b.elapsed())
	})
	inBubble(t, graceSeconds(1<<63-1), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Hour})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
	})
}

// A call up to 0.1 s after the deadline still has the minimum timeout, because timers may fire late.
func TestStopJustAfterTheDeadlineKeepsTheMinimumTimeout(t *testing.T) {
	const ms = time.Millisecond
	for late, timeout := range map[time.Duration]int64{0: 2, 50 * ms: 2, 99 * ms: 2, 100 * ms: 1, 101 * ms: 1} {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addMain("app", nil, lifecycletest.Script{FailStops: 4})
			termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
			<-time.After(500*ms - late) // the call after 1.5 s is that late
			require.True(b, b.Shorten(termination, 1))
			<-termination.Done()
			calls := b.stopCalls("app")
			require.Equal(b, stopCall{timeout, 1500}, calls[len(calls)-1])
		})
	}
}
