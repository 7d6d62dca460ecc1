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

// sinceBoot and timeOf, its inverse, convert between a time and the time since the boot, an hour before the event.
func sinceBoot(at time.Time) time.Duration { return at.Sub(received()) + time.Hour }
func timeOf(d time.Duration) time.Time     { return received().Add(d - time.Hour) }

// The next agent resumes a timetable from the state log. The resumed timetable has the same deadlines and windows as the
// stored one, and another announcement shortens both in the same way.
func TestAResumedTimetableIsEqual(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		request := pickRequest(r)
		tt := timetable.New(request)
		data, err := json.Marshal(tt.Store(sinceBoot))
		require.NoError(t, err)
		var s timetable.Stored
		require.NoError(t, json.Unmarshal(data, &s))
		require.NoError(t, s.Check())
		resumed := timetable.Resume(s, timeOf, request.Options)
		require.Equal(t, endTimes(tt), endTimes(resumed), "seed %d", seed)
		require.Equal(t, []time.Time{tt.HoldEnd(), tt.PublishEnd(), tt.Unlock()}, []time.Time{resumed.HoldEnd(), resumed.PublishEnd(), resumed.Unlock()})
		now := request.Received.Add(time.Duration(r.Int64N(int64(time.Minute))))
		for i := range tt.Schedule() {
			require.Equal(t, tt.Window(i, now), resumed.Window(i, now), "seed %d", seed)
		}
		next := pickRequest(r)
		next.Received, next.HostEnd, next.DoneBuckets, next.Old = now, now.Add(time.Duration(r.Int64N(int64(time.Minute)))), r.IntN(3), &tt
		made := timetable.New(next)
		next.Old = &resumed
		again := timetable.New(next)
		require.Equal(t, endTimes(made), endTimes(again), "seed %d", seed)
	}
}

// Check refuses a timetable that no agent stores, so that a damaged state log cannot mislead a drain. The
// error has the name of the field in the file, and its value.
func TestCheckNamesTheInvalidField(t *testing.T) {
	for want, change := range map[string]func(*timetable.Stored){
		"receivedMonotonicNanoseconds -1 must not be negative": func(s *timetable.Stored) { s.Received = -1 },
		"budget's prepareNanoseconds 0, holdNanoseconds 0, publishNanoseconds 2000000000, floorNanoseconds 2000000000 and marginNanoseconds -1 must not be negative": func(s *timetable.Stored) { s.Budget.Margin = -1 },
		"budget.waitEndNanoseconds -5 must not be negative or more than budget.endNanoseconds 42500000000":                                                           func(s *timetable.Stored) { s.Budget.WaitEnd = -5 },
		"budget.waitEndNanoseconds 42000000000 must not be negative or more than budget.endNanoseconds 7":                                                            func(s *timetable.Stored) { s.Budget.End = 7 },
		"the parts of budget take 42500000000 ns, more than budget.endNanoseconds 42499999999":                                                                       func(s *timetable.Stored) { s.Budget.End-- },
		"budget.buckets must not be empty":                                                                                                               func(s *timetable.Stored) { s.Budget.Buckets = nil },
		"budget.buckets[1].priority -7 must not be less than that before it":                                                                             func(s *timetable.Stored) { s.Budget.Buckets[1].Priority = -7 },
		"budget.buckets[1] {Priority:1000 Seconds:-9 Readiness:1s Pods:10s Unmount:2s Statuses:1s End:40s} must not be negative":                         func(s *timetable.Stored) { s.Budget.Buckets[1].Seconds = -9 },
		"budget.buckets[1] {Priority:1000 Seconds:10 Readiness:1s Pods:10s Unmount:2s Statuses:-1ns End:40s} must not be negative":                       func(s *timetable.Stored) { s.Budget.Buckets[1].Statuses = -1 },
		"budget.buckets[1].endNanoseconds 1 must not be less than that before it, 26000000000, or more than budget.endNanoseconds 42500000000":           func(s *timetable.Stored) { s.Budget.Buckets[1].End = 1 },
		"budget.buckets[1].endNanoseconds 42500000001 must not be less than that before it, 26000000000, or more than budget.endNanoseconds 42500000000": func(s *timetable.Stored) { s.Budget.Buckets[1].End = 42500000001 },
	} {
		tt := table(time.Minute, plan.Options{Steps: allSteps()})
		s := tt.Store(sinceBoot)
		require.NoError(t, s.Check())
		change(&s)
		require.EqualError(t, s.Check(), want)
	}
}
