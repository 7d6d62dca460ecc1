package timetable_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// pickRequest draws a request of up to ten buckets for a host that waits for limit, up to an
// hour; 0: no host waits.
func pickRequest(r *rand.Rand, limit time.Duration) timetable.Request {
	yes := func() bool { return r.IntN(3) > 0 }
	span := func() time.Duration {
		return []time.Duration{0, -1, time.Duration(r.Int64N(int64(5 * second)))}[r.IntN(3)]
	}
	request := timetable.Request{
		Received: received(), Late: r.IntN(4) == 0, Done: r.IntN(3),
		Prepared: !yes(), Held: !yes(), Published: !yes(),
		Options: plan.Options{
			Hooks:          plan.Hooks{Prepare: !yes(), Hold: yes(), Publish: yes(), Readiness: yes(), Unmount: yes(), Statuses: yes()},
			PrepareTimeout: span(), HoldTimeout: span(), PublishTimeout: span(), ReadinessReserve: span(),
			UnmountReserve: span(), FlushReserve: span(), ReleaseMargin: span(), NoRollOver: !yes(),
		},
	}
	for i := range 1 + r.IntN(10) {
		request.Schedule = append(request.Schedule, plan.Bucket{Priority: int32(i), Seconds: r.Int64N(40)})
	}
	if yes() {
		for _, b := range request.Schedule {
			request.Needs = append(request.Needs, r.Int64N(b.Seconds+1)*r.Int64N(2))
		}
	}
	if limit %= time.Hour; limit != 0 {
		request.HostEnd = after(limit)
	}
	if r.IntN(4) == 0 {
		request.Options.Limit = time.Duration(r.Int64N(int64(time.Minute)))
	}
	return request
}

// FuzzDrain steps through a drain whose buckets use a random part of their time: every
// bucket starts and ends in time, and has at least its time in the schedule.
func FuzzDrain(f *testing.F) {
	for seed := range uint64(50) {
		for _, limit := range []time.Duration{0, second, 5 * second, 30 * second, time.Minute, 10 * time.Minute} {
			f.Add(seed, int64(limit))
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit int64) {
		r := rand.New(rand.NewPCG(seed, 0))
		request := pickRequest(r, time.Duration(limit))
		tt := timetable.New(request)
		end := endOfHost(request)
		h, unlock := timetable.End(request)
		require.Equal(t, h, tt.H())
		require.Equal(t, unlock, tt.Unlock())
		require.False(t, tt.Unlock().After(end), "the lock is held past the host's end")
		checkNeeds(t, request, tt)
		checkDrain(t, r, request, tt, end)
		checkStored(t, r, tt, request.Options)
	})
}

// endOfHost returns when the host goes on, or a time after each drain.
func endOfHost(r timetable.Request) time.Time {
	end := after(10 * time.Hour)
	if !r.HostEnd.IsZero() {
		end = times.Later(r.HostEnd, received())
	}
	if limit := r.Options.Limit; limit > 0 {
		end = times.Earlier(end, after(limit))
	}
	return end
}

// checkNeeds checks that each bucket has the seconds that its pods need if the host waits
// for their sum and for Prepare.
func checkNeeds(t *testing.T, r timetable.Request, tt timetable.Table) {
	t.Helper()
	needs, sum := make([]int64, len(r.Schedule)), tt.Budget().Prepare
	for i, b := range r.Schedule {
		if needs[i] = b.Seconds; r.Needs != nil {
			needs[i] = r.Needs[i]
		}
		if i < r.Done {
			needs[i] = 0
			require.Zero(t, tt.Budget().Reserves[i])
		}
		sum += graceperiod.Duration(needs[i])
	}
	for i := range slices.Backward(needs) {
		got := tt.Schedule()[i].Seconds
		require.LessOrEqual(t, got, r.Schedule[i].Seconds)
		if sum <= endOfHost(r).Sub(received()) {
			require.GreaterOrEqual(t, got, needs[i])
		} else if got < needs[i] {
			for _, lower := range tt.Schedule()[:i] {
				require.Zero(t, lower.Seconds, "bucket %d is starved by a lower one", i)
			}
		}
	}
}

// checkDrain steps through a drain in which every part takes a random part of its time.
func checkDrain(t *testing.T, r *rand.Rand, request timetable.Request, tt timetable.Table, hostEnd time.Time) {
	t.Helper()
	take := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(max(d, 0)) + 1)) }
	waits := []time.Time{received(), tt.HoldEnd(), tt.PublishEnd(), tt.H()}
	for i := range waits[1:] {
		require.False(t, waits[i+1].Before(waits[i]))
	}
	require.False(t, tt.First().Before(tt.PublishEnd()))
	now, latest, left := times.Later(received().Add(take(tt.PublishEnd().Sub(received()))), tt.NotBefore()), tt.First(), time.Duration(0)
	for i, bucket := range tt.Schedule() {
		reserve := tt.Budget().Reserves[i]
		planned := latest
		latest = latest.Add(graceperiod.Duration(bucket.Seconds) + reserve.Readiness + reserve.Unmount + reserve.Statuses)
		if i < request.Done || r.IntN(4) == 0 {
			left = tt.Skip(i, left)
			continue
		}
		require.False(t, now.After(planned), "bucket %d starts late", i)
		w := tt.Window(i, now, left)
		if bucket.Seconds == 0 {
			require.Zero(t, w.Grace(now))
			continue
		}
		require.Equal(t, times.Earlier(now.Add(reserve.Readiness), tt.H()), w.Ready, "marks have all of their time")
		killed := now.Add(take(reserve.Readiness))
		grace := w.Grace(killed)
		require.GreaterOrEqual(t, grace, graceperiod.Duration(bucket.Seconds), "bucket %d has less than its own", i)
		require.LessOrEqual(t, grace, graceperiod.Duration(bucket.Seconds)+left)
		require.False(t, killed.Add(grace).After(hostEnd), "a grace ends after the host's end")
		require.False(t, w.End.After(times.Earlier(latest, tt.H())), "bucket %d ends late", i)
		require.Equal(t, times.Earlier(killed.Add(grace), tt.H()), w.KillsEnd(killed))
		require.False(t, w.UnmountsEnd(killed).After(w.End))
		require.Equal(t, bucket.Seconds, min(bucket.Seconds, w.Seconds(pod(), killed)))
		used := take(grace)
		now, left = killed.Add(used).Add(take(reserve.Unmount)).Add(take(reserve.Statuses)), w.Left(killed, used)
		require.GreaterOrEqual(t, left, time.Duration(0))
	}
}
