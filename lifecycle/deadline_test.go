//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The longest grace period that the API allows must not overflow into one that has passed: a hook still runs
// after an hour, and a container has an hour for its end.
func TestLongestGracePeriods(t *testing.T) {
	inBubble(t, graceSeconds(1<<63-1), func(b *testBed) {
		b.addMain("app", sleepHandler(1<<63-1), lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Hour)
		require.True(b, termination.Deadline().After(time.Now()))
		require.True(b, b.Shorten(termination, 5))
		<-termination.Done()
		require.Equal(b, time.Hour+7*time.Second, b.elapsed(), "5 s until the hook is cut, and the minimum of 2 s until the kill")
	})
	inBubble(t, graceSeconds(1<<63-1), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Hour})
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
	})
}

// The fifth StopContainer call, the first that does not fail, comes late after the deadline. If it is less
// than 0.1 s late, it still has the minimum timeout of 2 s, because timers may fire late. Otherwise what is
// late is subtracted, and the rest rounded down: 2 s - 0.1 s gives 1 s.
func TestStopJustAfterTheDeadlineKeepsTheMinimumTimeout(t *testing.T) {
	const ms = time.Millisecond
	const fifthCall = (100 + 200 + 400 + 800) * ms // the pauses after each of four failed calls
	for late, timeout := range map[time.Duration]int64{0: 2, 50 * ms: 2, 99 * ms: 2, 100 * ms: 1, 101 * ms: 1} {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addMain("app", nil, lifecycletest.Script{FailStops: 4})
			termination := b.Terminate(b.quietContext(), b.pod, lifecycle.Request{})
			b.sleepUntil(fifthCall - late - time.Second)
			require.True(b, b.Shorten(termination, 1)) // the deadline is now fifthCall - late
			<-termination.Done()
			calls := b.stopCalls("app")
			require.Len(b, calls, 5)
			require.Equal(b, stopCall{timeoutSeconds: timeout, atMilliseconds: fifthCall.Milliseconds()}, calls[4])
		})
	}
}
