package timetable

import (
	"errors"
	"fmt"
	"time"
)

// Check returns an error that names the first field with an impossible value; nil if all are possible. The names are those
// of the JSON in the state log.
func (t *Table) Check() error {
	b := t.Budget
	switch {
	case min(b.Prepare, b.Hold, b.Publish, b.Floor, b.Margin) < 0:
		return fmt.Errorf("budget's prepareNanoseconds %d, holdNanoseconds %d, publishNanoseconds %d, floorNanoseconds %d and marginNanoseconds %d must not be negative",
			b.Prepare, b.Hold, b.Publish, b.Floor, b.Margin)
	case b.WaitEnd < 0 || b.End < b.WaitEnd:
		return fmt.Errorf("budget.waitEndNanoseconds %d must not be negative or more than budget.endNanoseconds %d", b.WaitEnd, b.End)
	case len(b.Buckets) == 0:
		return errors.New("budget.buckets must not be empty")
	}
	var previousEnd time.Duration
	for i, bucket := range b.Buckets {
		switch {
		case i > 0 && bucket.Priority < b.Buckets[i-1].Priority:
			return fmt.Errorf("budget.buckets[%d].priority %d must not be less than that before it", i, bucket.Priority)
		case bucket.Seconds < 0 || min(bucket.Readiness, bucket.Pods, bucket.Unmount, bucket.Statuses) < 0:
			return fmt.Errorf("budget.buckets[%d] %+v must not be negative", i, bucket)
		case bucket.End < previousEnd || bucket.End > b.End:
			return fmt.Errorf("budget.buckets[%d].endNanoseconds %d must not be less than that before it, %d, or more than budget.endNanoseconds %d", i, bucket.End, previousEnd, b.End)
		}
		previousEnd = bucket.End
	}
	if b.Total() > b.End {
		return fmt.Errorf("the parts of budget take %d ns, more than budget.endNanoseconds %d", b.Total(), b.End)
	}
	return nil
}
