package shutdown

import (
	"math"
	"slices"
	"time"
)

// Fit gives a schedule that takes at most limit, in whole seconds. From the
// highest priority down each bucket gets what it has or, if that is less, what
// is left, so critical pods lose time last. All buckets stay, with 0 seconds if
// need be; a limit of 0 or less leaves nothing to any. A limit that covers the
// total gives an equal schedule. Seconds below 0 become 0. s is not changed.
func (s Schedule) Fit(limit time.Duration) Schedule {
	fitted := slices.Clone(s)
	covered := limit >= s.Total() // not summed up in seconds, which may overflow
	left := int64(max(limit, 0) / time.Second)
	for i := len(fitted) - 1; i >= 0; i-- {
		own := max(fitted[i].Seconds, 0)
		if !covered {
			own = min(own, left)
			left -= own
		}
		fitted[i].Seconds = own
	}
	return fitted
}

// within is the schedule fitted into a plan's limit, of which 0 means none.
func (s Schedule) within(limit time.Duration) Schedule {
	if limit == 0 {
		limit = math.MaxInt64
	}
	return s.Fit(limit)
}
