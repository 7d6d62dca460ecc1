package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/traffic"
)

func TestMeasure(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	events := []traffic.Event{
		{Outcome: traffic.Answered, At: at(-1), Took: 20 * time.Millisecond},
		{Outcome: traffic.Answered, At: at(-0.51), Took: 30 * time.Millisecond},
		{Outcome: traffic.Answered, At: at(-0.5), Took: 20 * time.Millisecond},
		{Outcome: traffic.Refused, At: at(1.7), Took: 200 * time.Millisecond, Pod: "old-1"},
		{Outcome: traffic.Refused, At: at(1.8), Took: time.Millisecond, Pod: "old-2"},
		{Outcome: traffic.Refused, At: at(1.9), Pod: ""},
		{Outcome: traffic.Cut, At: at(2.2), Took: time.Second, Pod: "old-1"},
	}
	var r Result
	r.measure(events, start, map[string]time.Time{"old-1": at(1), "old-2": at(1.75)})
	require.Equal(t, traffic.Counts{Answered: 3, Refused: 3, Cut: 1}, r.Requests)
	require.InDelta(t, 0.03, r.LongestAnswerSeconds, 1e-9, "a cut request is no answer")
	require.InDelta(t, 0.7, r.LastRefusalSeconds, 1e-9, "since the signal of the same pod")

	require.Len(t, r.Bins, 6)
	sum, covered := 0, 0.0
	for i, b := range r.Bins {
		require.InDelta(t, -1+BinSeconds*float64(i), b.AtSeconds, 1e-9)
		sum += b.Answered + b.Failed()
		covered += b.Seconds
	}
	require.Equal(t, len(events), sum, "each event is in a bin")
	require.InDelta(t, 3.2, covered, 1e-9, "the bins cover the time from the first event to the last")
	require.Equal(t, 2, r.Bins[0].Answered)
	require.Equal(t, 1, r.Bins[1].Answered, "an event between two bins is in the later one")
	require.InDelta(t, 4, r.Bins[0].PerSecond(traffic.Answered), 1e-9)
}

func TestMeasureNothing(t *testing.T) {
	var r Result
	r.measure(nil, time.Unix(0, 0), nil)
	require.Empty(t, r.Bins)
	r.measure([]traffic.Event{{Outcome: traffic.Cut, At: time.Unix(1, 0)}}, time.Unix(0, 0), nil)
	require.Len(t, r.Bins, 1)
	require.Equal(t, 1, r.Bins[0].Cut)
}

func TestLongest(t *testing.T) {
	r := Result{Pods: []Pod{{SignalSeconds: 1, ExitedSeconds: 3, TookSeconds: 7}, {SignalSeconds: 2, ExitedSeconds: 8, TookSeconds: 6, Killed: true}}}
	require.InDelta(t, 7, r.LongestStopSeconds(), 1e-9)
	require.InDelta(t, 6, r.LongestDrainSeconds(), 1e-9)
	require.Equal(t, 1, r.Killed())
	require.Zero(t, Result{}.LongestStopSeconds())
}
