package shutdown

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

func TestDelayCappedErrorNamesWhatIsKnown(t *testing.T) {
	const text = "the host delays its shutdown by 5s at most, 30s was asked for"
	for want, e := range map[string]DelayCappedError{
		text: {},
		text + "; InhibitDelayMaxSec is set by /etc/a.conf": {Setting: "InhibitDelayMaxSec", Winner: "/etc/a.conf"},
		text + "; raise InhibitDelayMaxSec":                 {Setting: "InhibitDelayMaxSec"},
		text + "; the limit is set by /etc/a.conf":          {Winner: "/etc/a.conf"},
	} {
		e.Requested, e.Granted = 30*time.Second, 5*time.Second
		require.EqualError(t, &e, want)
	}
}

// Each delay of the backoff is between half of its step and the whole step.
func TestDelaysOfTheBackoff(t *testing.T) {
	for range 100 {
		var b backoff
		for step := backoffFirst; ; step = min(2*step, backoffMost) {
			delay := b.delay()
			require.GreaterOrEqual(t, delay, step/2)
			require.LessOrEqual(t, delay, step)
			if step == backoffMost {
				break
			}
		}
		b.reset()
		require.LessOrEqual(t, b.delay(), backoffFirst)
	}
}

func TestOutcomeLabel(t *testing.T) {
	require.Equal(t, "Ended", outcomeLabel(kills.State{}))
	require.Equal(t, "Failed", outcomeLabel(kills.State{Err: errors.New("boom")}))
	require.Equal(t, "Killed", outcomeLabel(kills.State{Result: kills.Result{Outcome: "Killed"}, Err: errors.New("boom")}))
}

// Up to ten calls that hang are named. If there are more, the first ten names are given.
func TestHangingCallsAreNamed(t *testing.T) {
	for n, want := range map[int]string{
		0: "", 2: "calls that have not returned: call 0, call 1",
		10: "calls that have not returned: call 0, call 1, call 2, call 3, call 4, call 5, call 6, call 7, call 8, call 9",
		11: "11 calls have not returned, among them call 0, call 1, call 10, call 2, call 3, call 4, call 5, call 6, call 7, call 8",
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls call.Group
			over := make(chan struct{})
			defer close(over)
			for i := range n {
				calls.Go(func() string { return "call " + strconv.Itoa(i) }, func() { <-over })
			}
			began := time.Now()
			err := hangingError(&calls, began.Add(3*time.Second))
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, want)
			require.Equal(t, 3*time.Second, time.Since(began))
		})
	}
}
