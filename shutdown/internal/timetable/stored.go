package timetable

import (
	"errors"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Stored is a timetable on record.
type Stored struct {
	// Received is when the event of the drain was received, counted from the boot on
	// CLOCK_MONOTONIC.
	Received time.Duration `json:"receivedMonotonicNanoseconds"`
	// Budget is the budget as fitted. Its ends count from Received.
	Budget plan.Budget `json:"budget"`
}

// Store returns the timetable as it is to be stored. sinceBoot converts a time.
func (t *Table) Store(sinceBoot func(time.Time) time.Duration) Stored {
	return Stored{Received: sinceBoot(t.received), Budget: t.budget}
}

// Resume returns the timetable on record, which s.Check has found no fault with: every end is where
// it was. timeOf converts a time since the boot.
func Resume(s Stored, timeOf func(time.Duration) time.Time, opts plan.Options) Table {
	return Table{received: timeOf(s.Received), budget: s.Budget, opts: opts}
}

// Check returns an error with the field and the value that no timetable can have; nil if
// there is none.
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
