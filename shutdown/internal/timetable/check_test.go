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

// resume stores a timetable as JSON in the state log, and returns what the next agent makes of it.
func resume(t *testing.T, tt *timetable.Table, opts plan.Options) *timetable.Table {
	t.Helper()
	data, err := json.Marshal(tt)
	require.NoError(t, err)
	stored := &timetable.Table{}
	require.NoError(t, json.Unmarshal(data, stored))
	require.NoError(t, stored.Check())
	return stored.WithOptions(opts)
}

// randomTime returns a time in the minute after begin.
func randomTime(r *rand.Rand, begin time.Time) time.Time {
	return begin.Add(time.Duration(r.Int64N(int64(time.Minute))))
}

// The next agent resumes a timetable from the state log. It has the same deadlines, and the same windows at any time.
func TestAResumedTimetableIsEqual(t *testing.T) {
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		request := pickRequest(r)
		tt := timetable.New(request)
		resumed := resume(t, tt, request.Options)
		require.Equal(t, endTimes(tt), endTimes(resumed), "seed %d", seed)
		require.Equal(t, []time.Time{tt.HoldEnd(), tt.PublishEnd(), tt.ReleaseBy()}, []time.Time{resumed.HoldEnd(), resumed.PublishEnd(), resumed.ReleaseBy()})
		now := randomTime(r, request.Received)
		for i := range tt.Schedule() {
			require.Equal(t, tt.Window(i, now), resumed.Window(i, now), "seed %d", seed)
		}
	}
}

// The host announces its shutdown again, with another deadline. A timetable that was stored and read again is then shortened to
// the same times as the original.
func TestAResumedTimetableIsShortenedInTheSameWay(t *testing.T) {
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		first, next := pickRequest(r), pickRequest(r)
		tt := timetable.New(first)
		resumed := resume(t, tt, first.Options)
		next.Received, next.DoneBuckets = randomTime(r, first.Received), r.IntN(3)
		next.HostEnd = randomTime(r, next.Received)

		next.Old = tt
		want := timetable.New(next)
		next.Old = resumed
		got := timetable.New(next)
		require.Equal(t, endTimes(want), endTimes(got), "seed %d", seed)
	}
}

// Check refuses a timetable that no agent stores, so that a damaged state log cannot mislead a drain. The error has the
// name of the field in the file, and its value. In the undamaged timetable the buckets end at 26 s and 40 s, the drain stops
// waiting at 42 s, and it ends at 42.5 s.
func TestCheckNamesTheInvalidField(t *testing.T) {
	for want, change := range map[string]func(*timetable.Table){
		"budget's prepareNanoseconds 0, holdNanoseconds 0, publishNanoseconds 2000000000, floorNanoseconds 2000000000 and marginNanoseconds -1 must not be negative": func(s *timetable.Table) { s.Budget.Margin = -1 },
		"budget.waitEndNanoseconds -5 must not be negative or more than budget.endNanoseconds 42500000000":                                                           func(s *timetable.Table) { s.Budget.WaitEnd = -5 },
		"budget.waitEndNanoseconds 42000000000 must not be negative or more than budget.endNanoseconds 7":                                                            func(s *timetable.Table) { s.Budget.End = 7 },
		"the parts of budget take 42500000000 ns, more than budget.endNanoseconds 42499999999":                                                                       func(s *timetable.Table) { s.Budget.End-- },
		"budget.buckets must not be empty":                                                                                                               func(s *timetable.Table) { s.Budget.Buckets = nil },
		"budget.buckets[1].priority -7 must not be less than that before it":                                                                             func(s *timetable.Table) { s.Budget.Buckets[1].Priority = -7 },
		"budget.buckets[1] {Priority:1000 Seconds:-9 Readiness:1s Pods:10s Unmount:2s Statuses:1s End:40s} must not be negative":                         func(s *timetable.Table) { s.Budget.Buckets[1].Seconds = -9 },
		"budget.buckets[1] {Priority:1000 Seconds:10 Readiness:1s Pods:10s Unmount:2s Statuses:-1ns End:40s} must not be negative":                       func(s *timetable.Table) { s.Budget.Buckets[1].Statuses = -1 },
		"budget.buckets[1].endNanoseconds 1 must not be less than that before it, 26000000000, or more than budget.endNanoseconds 42500000000":           func(s *timetable.Table) { s.Budget.Buckets[1].End = 1 },
		"budget.buckets[1].endNanoseconds 42500000001 must not be less than that before it, 26000000000, or more than budget.endNanoseconds 42500000000": func(s *timetable.Table) { s.Budget.Buckets[1].End = 42500000001 },
	} {
		tt := tableWithin(time.Minute, plan.Options{Steps: allButPrepareAndHold()})
		require.NoError(t, tt.Check())
		change(tt)
		require.EqualError(t, tt.Check(), want)
	}
}
