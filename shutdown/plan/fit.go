package plan

import (
	"math/bits"
	"slices"
	"time"
)

// leastShare is the shortest wait for publishing, or for the reserve of a bucket, that is
// worth its time.
const leastShare = 100 * time.Millisecond

// Fit returns the budget shortened for a host that waits for limit; a negative limit counts
// as 0. If limit is Total or more, only the margin changes.
//
// needs has, for each bucket, the seconds that its pods use ([Schedule.Needs]); they count
// up to the seconds of the bucket. A bucket whose pods need nothing has no reserve. A bucket
// without an entry needs its seconds, and so all do if needs is nil.
//
// Prepare is not shortened: it is taken from the limit first. The other parts are shortened
// in this order, and only as far as is necessary:
//
//   - the seconds of each bucket beyond the needs, first those of buckets that need
//     nothing, each time from the lowest bucket up;
//   - the hold, then the floor, and the room for the margin between the last bucket and the
//     end of the limit;
//   - publishing and the reserve of each bucket, in proportion, down to nothing; a share
//     below 100 ms goes to the highest bucket that can use it;
//   - the needs, in whole seconds and from the lowest bucket up.
//
// So a longer limit takes no time from any bucket. The margin itself is only shortened to a
// tenth of the limit: the drain stops waiting that long before the end of the limit, also
// where the pods' time ends later. b is not changed.
func (b Budget) Fit(limit time.Duration, needs []int64) Budget {
	limit = max(limit, 0)
	isEnough := limit >= b.Total()
	b.Margin = min(b.Margin, limit/10)
	if isEnough {
		return b
	}
	configured := b.Schedule
	b.keepNeeds(needs)
	left := max(limit-b.Prepare, 0)
	needed, beside := b.Schedule.Total(), b.Overhead()
	if left < needed {
		b.cutNeeds(left)
		left, needed = 0, 0
	}
	left -= needed
	if left < beside {
		b.shareBeside(beside, left)
		beside = left
	}
	left = max(left-beside-b.Margin, 0)
	b.Floor = min(b.Floor, left)
	b.Hold = min(b.Hold, left-b.Floor)
	b.addSeconds(configured, left-b.Floor-b.Hold)
	return b
}

// keepNeeds sets the seconds of each bucket to what its pods need.
func (b *Budget) keepNeeds(needs []int64) {
	b.Schedule = slices.Clone(b.Schedule)
	b.Reserves = append(slices.Clone(b.Reserves), make([]Reserve, max(len(b.Schedule)-len(b.Reserves), 0))...)
	for i := range b.Schedule {
		bucket := &b.Schedule[i]
		if bucket.Seconds = max(bucket.Seconds, 0); i < len(needs) {
			bucket.Seconds = min(bucket.Seconds, max(needs[i], 0))
		}
		if bucket.Seconds == 0 {
			b.Reserves[i] = Reserve{}
		}
	}
}

// cutNeeds shortens the buckets until they fit into limit: from the highest bucket down,
// each has the most whole seconds.
func (b *Budget) cutNeeds(limit time.Duration) {
	for i := len(b.Schedule) - 1; i >= 0; i-- {
		bucket := &b.Schedule[i]
		bucket.Seconds = min(bucket.Seconds, int64(limit/time.Second))
		limit -= bucket.time()
	}
}

// addSeconds gives whole seconds of what is left of the limit to the buckets, up to what is
// configured: from the highest bucket down, first to those that have pods.
func (b *Budget) addSeconds(configured Schedule, left time.Duration) {
	for _, used := range []bool{true, false} {
		for i := len(b.Schedule) - 1; i >= 0; i-- {
			bucket := &b.Schedule[i]
			if (bucket.Seconds > 0) != used {
				continue
			}
			more := max(min(configured[i].Seconds-bucket.Seconds, int64(left/time.Second)), 0)
			bucket.Seconds += more
			left -= time.Duration(more) * time.Second
		}
	}
}

// shareBeside shortens publishing and the reserves, whose sum is given, to limit.
func (b *Budget) shareBeside(sum, limit time.Duration) {
	left, shares := limit, make([]time.Duration, len(b.Reserves))
	give := func(wanted time.Duration) time.Duration {
		given := min(proportion(wanted, limit, sum), left)
		if given < leastShare {
			return 0
		}
		left -= given
		return given
	}
	b.Publish = give(b.Publish)
	for i, r := range b.Reserves {
		shares[i] = give(r.total())
	}
	for i := len(shares) - 1; i >= 0; i-- {
		more := min(left, b.Reserves[i].total()-shares[i])
		left -= more
		b.Reserves[i] = b.Reserves[i].within(shares[i] + more)
	}
}

// proportion returns the part of limit that is to limit what part is to sum, or part if the sum
// is no more than limit.
func proportion(part, limit, sum time.Duration) time.Duration {
	if sum <= limit {
		return part
	}
	hi, lo := bits.Mul64(uint64(part), uint64(limit))
	quotient, _ := bits.Div64(hi, lo, uint64(sum))
	return time.Duration(quotient)
}
