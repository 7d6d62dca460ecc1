package plan

import (
	"slices"
	"time"
)

// leastReserve is what a bucket keeps of its reserve when the host's limit is short.
// A bucket of less than ten seconds keeps a tenth of its pods' time.
const leastReserve = time.Second

// Fit is the budget for a host that waits for limit; less than 0 counts as 0. What
// is missing gives way in this order, and no part by more than is missing:
//
//   - the hold, then the containers' floor;
//   - publishing, down to a tenth of the limit, and the reserve of each bucket, down
//     to a second or a tenth of the bucket's time, in proportion;
//   - the pods' time, in whole seconds and from the lowest bucket up. What the whole
//     seconds leave of the limit goes back to publishing and to the reserves. A bucket
//     that is left no time stays, with 0 seconds and no reserve.
//
// The margin is a tenth of the limit at most. It is no reason to shorten a bucket as
// long as all else fits: the waiting for the last bucket then ends before the bucket
// does, by the margin. b is not changed.
func (b Budget) Fit(limit time.Duration) Budget {
	limit = max(limit, 0)
	b.Margin = min(b.Margin, limit/10)
	b.Schedule = slices.Clone(b.Schedule)
	reserves := make([]Reserve, len(b.Schedule))
	copy(reserves, b.Reserves)
	b.Reserves = reserves
	publish := min(b.Publish, limit/10)
	if saturatingAdd(publish, b.leastBuckets()) > limit {
		b.fitSchedule(limit - b.Margin - publish)
	}
	b.shrink(limit, publish)
	return b
}

// leastBuckets is the time of all buckets with the least of their reserves.
func (b *Budget) leastBuckets() time.Duration {
	var sum time.Duration
	for i, bucket := range b.Schedule {
		sum = saturatingAdd(sum, saturatingAdd(bucket.time(), b.least(i)))
	}
	return sum
}

// least is how far the reserve of a bucket may shrink.
func (b *Budget) least(i int) time.Duration {
	return min(b.Reserves[i].total(), leastReserve, b.Schedule[i].time()/10)
}

// fitSchedule gives the buckets, from the highest one down, the most whole seconds
// that fit into left beside the least reserve.
func (b *Budget) fitSchedule(left time.Duration) {
	for i := len(b.Schedule) - 1; i >= 0; i-- {
		bucket := &b.Schedule[i]
		most := min(b.Reserves[i].total(), leastReserve)
		// The least reserve is most or a tenth of the bucket, whichever is less, so a
		// number of seconds fits if it fits beside either.
		fits := max(int64((left-most)/time.Second), int64(left/(time.Second+time.Second/10)))
		bucket.Seconds = min(bucket.Seconds, fits)
		if bucket.Seconds == 0 {
			b.Reserves[i] = Reserve{}
			continue
		}
		left -= bucket.time() + b.least(i)
	}
}

// shrink takes what the budget is above the limit from the parts that give way.
// publish is the least that remains of publishing.
func (b *Budget) shrink(limit, publish time.Duration) {
	left := max(limit-saturatingAdd(b.Margin, saturatingAdd(b.Publish, b.buckets())), 0)
	b.Floor = min(b.Floor, left)
	b.Hold = min(b.Hold, left-b.Floor)

	least := saturatingAdd(publish, b.leastBuckets())
	left = max(limit-b.Margin-least, 0)
	beyond := make([]time.Duration, 0, 1+len(b.Reserves))
	beyond = append(beyond, b.Publish-publish)
	for i, reserve := range b.Reserves {
		beyond = append(beyond, reserve.total()-b.least(i))
	}
	beyond = apportion(beyond, left)
	b.Publish = publish + beyond[0]
	for i := range b.Reserves {
		b.Reserves[i] = b.Reserves[i].within(b.least(i) + beyond[1+i])
	}
}
