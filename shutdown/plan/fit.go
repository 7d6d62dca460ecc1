package plan

import (
	"slices"
	"time"
)

// minReserve is how much of its reserve a bucket of ten seconds or more keeps when the
// host's limit is short. A shorter bucket keeps a tenth of its pods' time.
const minReserve = time.Second

// Fit returns the budget shortened for a host that waits for limit; a negative limit
// counts as 0. The parts are shortened in this order, and only as far as is necessary:
//
//   - the hold, then the floor;
//   - publishing, down to a tenth of the limit, and the reserve of each bucket, down
//     to a second or to a tenth of the bucket's time if that is less, all in proportion;
//   - the pods' time, in whole seconds and from the lowest bucket up. What is left of the
//     limit after the whole seconds goes back to publishing and the reserves. A bucket
//     without time stays in the schedule, with 0 s and no reserve.
//
// The margin is at most a tenth of the limit. No bucket is shortened for the sake of the
// margin if everything else fits: then the drain stops waiting for the last bucket before
// its end, by the margin. b is not changed.
func (b Budget) Fit(limit time.Duration) Budget {
	limit = max(limit, 0)
	b.Margin = min(b.Margin, limit/10)
	b.Schedule = slices.Clone(b.Schedule)
	reserves := make([]Reserve, len(b.Schedule))
	copy(reserves, b.Reserves)
	b.Reserves = reserves
	publish := min(b.Publish, limit/10)
	if saturatingAdd(publish, b.minBuckets()) > limit {
		b.fitSchedule(limit - b.Margin - publish)
	}
	b.shrink(limit, publish)
	return b
}

// minBuckets returns the time of all buckets with the shortest reserves.
func (b *Budget) minBuckets() time.Duration {
	var sum time.Duration
	for i, bucket := range b.Schedule {
		sum = saturatingAdd(sum, saturatingAdd(bucket.time(), b.minReserve(i)))
	}
	return sum
}

// minReserve returns the shortest reserve of bucket i.
func (b *Budget) minReserve(i int) time.Duration {
	return min(b.Reserves[i].total(), minReserve, b.Schedule[i].time()/10)
}

// fitSchedule sets the seconds of the buckets, from the highest bucket down, to the most
// whole seconds that fit into limit together with the shortest reserves.
func (b *Budget) fitSchedule(limit time.Duration) {
	for i := len(b.Schedule) - 1; i >= 0; i-- {
		bucket := &b.Schedule[i]
		most := min(b.Reserves[i].total(), minReserve)
		// The shortest reserve is the smaller of most and a tenth of the bucket, so a
		// number of seconds fits if it fits together with either.
		fits := max(int64((limit-most)/time.Second), int64(limit/(time.Second+time.Second/10)))
		bucket.Seconds = min(bucket.Seconds, fits)
		if bucket.Seconds == 0 {
			b.Reserves[i] = Reserve{}
		}
		limit -= bucket.time() + b.minReserve(i)
	}
}

// shrink shortens the hold, the floor, publishing and the reserves until the budget fits
// into limit. Publishing is not shortened below minPublish.
func (b *Budget) shrink(limit, minPublish time.Duration) {
	spare := max(limit-saturatingAdd(b.Margin, saturatingAdd(b.Publish, b.buckets())), 0)
	b.Floor = min(b.Floor, spare)
	b.Hold = min(b.Hold, spare-b.Floor)

	spare = max(limit-b.Margin-saturatingAdd(minPublish, b.minBuckets()), 0)
	aboveMin := make([]time.Duration, 0, 1+len(b.Reserves)) // what each part may lose
	aboveMin = append(aboveMin, b.Publish-minPublish)
	for i, reserve := range b.Reserves {
		aboveMin = append(aboveMin, reserve.total()-b.minReserve(i))
	}
	aboveMin = apportion(aboveMin, spare)
	b.Publish = minPublish + aboveMin[0]
	for i := range b.Reserves {
		b.Reserves[i] = b.Reserves[i].within(b.minReserve(i) + aboveMin[1+i])
	}
}
