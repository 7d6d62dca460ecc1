package timetable_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The tests' host has booted an hour before the event.
func sinceBoot(at time.Time) time.Duration { return at.Sub(received()) + time.Hour }
func timeOf(d time.Duration) time.Time     { return received().Add(d - time.Hour) }

// checkStored checks that a timetable on record is the same after a restart: its budget,
// its waits, the windows of its buckets and its end.
func checkStored(t *testing.T, r *rand.Rand, tt timetable.Table, opts plan.Options) {
	t.Helper()
	data, err := json.Marshal(tt.Store(sinceBoot))
	require.NoError(t, err)
	var s timetable.Stored
	require.NoError(t, json.Unmarshal(data, &s))
	require.NoError(t, s.Check())
	resumed := timetable.Resume(s, timeOf, opts)
	require.Equal(t, tt.Budget(), resumed.Budget())
	times := func(t timetable.Table) []time.Time {
		return []time.Time{t.HoldEnd(), t.PublishEnd(), t.First(), t.NotBefore(), t.H(), t.Unlock()}
	}
	require.Equal(t, times(tt), times(resumed))
	now, left := received().Add(time.Duration(r.Int64N(int64(time.Minute)))), time.Duration(r.Int64N(int64(time.Minute)))
	for i := range tt.Schedule() {
		require.Equal(t, tt.Window(i, now, left), resumed.Window(i, now, left))
		require.Equal(t, tt.Skip(i, left), resumed.Skip(i, left))
	}
}

// The margin of a short limit is stored as it was fitted.
func TestResumeKeepsTheMargin(t *testing.T) {
	opts := plan.Options{Hooks: allHooks(), ReleaseMargin: 5 * second}
	tt := table(10*second, opts)
	resumed := timetable.Resume(tt.Store(sinceBoot), timeOf, opts)
	require.Equal(t, after(9*second), resumed.H())
	require.Equal(t, after(9500*ms), resumed.Unlock())
	p := resumed.Plan(nil, opts)
	require.Equal(t, p.Wanted, p.Fitted)
	require.Empty(t, p.Warnings)
}

// A record may be torn or foreign.
func TestCheckOfAStoredTimetable(t *testing.T) {
	for want, change := range map[string]func(*timetable.Stored){
		"receivedMonotonicNanoseconds -1 must not be negative":                                                                                                       func(s *timetable.Stored) { s.Received = -1 },
		"firstMonotonicNanoseconds 1 must not be before receivedMonotonicNanoseconds 3600000000000":                                                                  func(s *timetable.Stored) { s.First = 1 },
		"endMonotonicNanoseconds -5 must not be before receivedMonotonicNanoseconds 3600000000000":                                                                   func(s *timetable.Stored) { s.End = -5 },
		"budget's prepareNanoseconds 0, holdNanoseconds 0, publishNanoseconds 2000000000, floorNanoseconds 2000000000 and marginNanoseconds -1 must not be negative": func(s *timetable.Stored) { s.Budget.Margin = -1 },
		"budget.reserves has 1 entries, budget.schedule has 2":                                                                                                       func(s *timetable.Stored) { s.Budget.Reserves = s.Budget.Reserves[:1] },
		"budget.schedule[1].priority -7 must not be less than that before it":                                                                                        func(s *timetable.Stored) { s.Budget.Schedule[1].Priority = -7 },
		"budget.schedule[0].seconds -9 must not be negative":                                                                                                         func(s *timetable.Stored) { s.Budget.Schedule[0].Seconds = -9 },
		"budget.reserves[1] {Readiness:1s Unmount:2s Statuses:-1ns} must not be negative":                                                                            func(s *timetable.Stored) { s.Budget.Reserves[1].Statuses = -1 },
	} {
		tt := table(time.Minute, plan.Options{Hooks: allHooks()})
		s := tt.Store(sinceBoot)
		require.NoError(t, s.Check())
		change(&s)
		require.EqualError(t, s.Check(), want)
	}
	require.NoError(t, timetable.Stored{}.Check(), "a schedule may be empty")
}
