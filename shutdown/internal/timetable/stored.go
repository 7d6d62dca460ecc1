package timetable

import (
	"errors"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Stored is a timetable as the state log has it, for the next agent.
type Stored struct {
	// Received is when the event was received, as CLOCK_MONOTONIC since the boot.
	Received time.Duration `json:"receivedMonotonicNanoseconds"`
	// Budget is the fitted budget. Its ends count from Received.
	Budget plan.Budget `json:"budget"`
}

// Store returns the timetable for the state log. sinceBoot converts a point in time to the duration since the boot, which
// means the same to the next agent.
func (t *Table) Store(sinceBoot func(time.Time) time.Duration) Stored {
	return Stored{Received: sinceBoot(t.received), Budget: t.budget}
}

// Resume returns the table of a stored timetable, with the same deadlines. s.Check must have returned nil.
// timeOf is the inverse of Store's sinceBoot.
func Resume(s Stored, timeOf func(time.Duration) time.Time, opts plan.Options) Table {
	return Table{received: timeOf(s.Received), budget: s.Budget, opts: opts}
}

// Check returns an error that names the first field with an impossible value; nil if all are possible.
func (s Stored) Check() error {
	b := s.Budget
	switch {
	case s.Received < 0:
		return fmt.Errorf("receivedMonotonicNanoseconds %d must not be negative", s.Received)
	case min(b.Prepare, b.Hold, b.Publish, b.Floor, b.Margin) < 0:
		return fmt.Errorf("budget's prepareNanoseconds %d, holdNanoseconds %d, publishNanoseconds %d, floorNanoseconds %d and marginNanoseconds %d must not be negative",
			b.Prepare, b.Hold, b.Publish, b.Floor, b.Margin)
	case b.WaitEnd < 0 || b.End < b.WaitEnd:
		return fmt.Errorf("budget.waitEndNanoseconds %d must not be negative or more than budget.endNanoseconds %d", b.WaitEnd, b.End)
	case len(b.Buckets) == 0:
		return errors.New("budget.buckets must not be empty")
	}
	var last time.Duration
	for i, bucket := range b.Buckets {
		switch {
		case i > 0 && bucket.Priority < b.Buckets[i-1].Priority:
			return fmt.Errorf("budget.buckets[%d].priority %d must not be less than that before it", i, bucket.Priority)
		case min(bucket.Readiness, bucket.Pods, bucket.Unmount, bucket.Statuses) < 0 || bucket.Seconds < 0:
			return fmt.Errorf("budget.buckets[%d] %+v must not be negative", i, bucket)
		case bucket.End < last || bucket.End > b.End:
			return fmt.Errorf("budget.buckets[%d].endNanoseconds %d must not be less than that before it, %d, or more than budget.endNanoseconds %d", i, bucket.End, last, b.End)
		}
		last = bucket.End
	}
	if b.Total() > b.End {
		return fmt.Errorf("the parts of budget take %d ns, more than budget.endNanoseconds %d", b.Total(), b.End)
	}
	return nil
}
