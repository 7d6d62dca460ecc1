package shutdown

import (
	"time"
)

// timing is the arithmetic of a drain.
//
// Bucket i ends at E(i), the start and the seconds of all buckets up to it, and
// starts when the one before it is done. So time that a bucket leaves unused is
// there for the later ones, and the last one never ends later than planned.
type timing struct {
	start    time.Time // of the first bucket
	end      time.Time // when the host goes on, less the margin: nothing is waited for after it
	schedule Schedule  // as fitted
	plan     PlanOptions
}

// share is the part of one bucket, in the order in which it is used.
type share struct {
	pods, unmount, flush time.Time     // until when each is waited for
	left, own            time.Duration // what the pods have, with what rolled over and without
}

// reserve is what a bucket keeps for the API server.
func (s share) reserve() time.Duration { return max(s.flush.Sub(s.unmount), 0) }

// latecomers is until when pods are waited for that use all of their grace: they
// end a moment after it, and their final statuses belong into this bucket's flush.
func (s share) latecomers() time.Time { return s.unmount.Add(s.reserve() / 2) }

// later is the share of pods that were marked first: they and the unmount have as
// much as before, and the flush has less.
func (s share) later(took time.Duration) share {
	s.pods = earlier(s.pods.Add(took), s.flush)
	s.unmount = earlier(s.unmount.Add(took), s.flush)
	return s
}

// timerLag is how late a bucket may start without losing a second of its grace,
// which is counted in whole ones: timers and the reading of the pods take a
// moment, and a pod with 20 s would get 19.
const timerLag = 100 * time.Millisecond

// share works out what bucket i has if it starts now. To one without time of its
// own nothing rolls over: it is not waited for.
func (t *timing) share(i int, now time.Time) share {
	bucket := t.schedule[i].time()
	ends := t.start.Add(t.schedule.End(i))
	if bucket == 0 || t.plan.NoRollOver {
		ends = earlier(ends, now.Add(bucket))
	}
	unmount, flush := t.plan.reserves(ends.Sub(now))
	pods := ends.Add(-unmount - flush)
	return share{
		pods:    earlier(pods, t.end),
		unmount: earlier(ends.Add(-flush), t.end),
		flush:   earlier(ends, t.end),
		left:    pods.Sub(now) + timerLag,
		own:     bucket - unmount - flush,
	}
}

// earlier is the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// fitInto gives the schedule for a host that waits for limit, and how long before
// the host's end everything has to be over. The margin is a tenth of the limit at
// most, so that a short limit is not spent on it.
func (s Schedule) fitInto(limit, releaseMargin time.Duration) (fitted Schedule, margin time.Duration) {
	margin = max(min(releaseMargin, limit/10), 0)
	if limit >= s.Total() {
		return s, margin
	}
	return s.Fit(limit - margin), margin
}
