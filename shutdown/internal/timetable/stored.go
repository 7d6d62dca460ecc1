package timetable

import (
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Stored is a timetable on record. Its times count from the boot, on CLOCK_MONOTONIC.
type Stored struct {
	// Received is when the event of the drain was received.
	Received time.Duration `json:"receivedMonotonicNanoseconds"`
	// First is when the first bucket starts at the latest, and with Late also at the
	// earliest.
	First time.Duration `json:"firstMonotonicNanoseconds"`
	Late  bool          `json:"late,omitempty"`
	// End is H: when the drain stops all waiting.
	End time.Duration `json:"endMonotonicNanoseconds"`
	// Budget is the budget as fitted.
	Budget plan.Budget `json:"budget"`
}

// Store returns the timetable as it is to be stored. sinceBoot converts a time.
func (t *Table) Store(sinceBoot func(time.Time) time.Duration) Stored {
	return Stored{
		Received: sinceBoot(t.received), First: sinceBoot(t.First()), Late: t.late, End: sinceBoot(t.H()), Budget: t.budget,
	}
}

// Resume returns the timetable on record, which s.Check has found no fault with: each bucket
// ends when it was to end, and the margin is what was fitted. timeOf converts a time since
// the boot. Of the options only NoRollOver counts.
func Resume(s Stored, timeOf func(time.Duration) time.Time, opts plan.Options) Table {
	t := Table{received: timeOf(s.Received), wanted: s.Budget, budget: s.Budget, late: s.Late}
	t.setWindows(s.First-s.Received, s.End-s.Received, opts)
	return t
}

// Check returns an error with the field and the value that no timetable can have; nil if
// there is none.
func (s Stored) Check() error {
	b := s.Budget
	switch {
	case s.Received < 0:
		return fmt.Errorf("receivedMonotonicNanoseconds %d must not be negative", s.Received)
	case s.First < s.Received:
		return fmt.Errorf("firstMonotonicNanoseconds %d must not be before receivedMonotonicNanoseconds %d", s.First, s.Received)
	case s.End < s.Received:
		return fmt.Errorf("endMonotonicNanoseconds %d must not be before receivedMonotonicNanoseconds %d", s.End, s.Received)
	case min(b.Prepare, b.Hold, b.Publish, b.Floor, b.Margin) < 0:
		return fmt.Errorf("budget's prepareNanoseconds %d, holdNanoseconds %d, publishNanoseconds %d, floorNanoseconds %d and marginNanoseconds %d must not be negative",
			b.Prepare, b.Hold, b.Publish, b.Floor, b.Margin)
	case len(b.Reserves) != len(b.Schedule):
		return fmt.Errorf("budget.reserves has %d entries, budget.schedule has %d", len(b.Reserves), len(b.Schedule))
	}
	for i, r := range b.Reserves {
		switch bucket := b.Schedule[i]; {
		case i > 0 && bucket.Priority < b.Schedule[i-1].Priority:
			return fmt.Errorf("budget.schedule[%d].priority %d must not be less than that before it", i, bucket.Priority)
		case bucket.Seconds < 0:
			return fmt.Errorf("budget.schedule[%d].seconds %d must not be negative", i, bucket.Seconds)
		case min(r.Readiness, r.Unmount, r.Statuses) < 0:
			return fmt.Errorf("budget.reserves[%d] %+v must not be negative", i, r)
		}
	}
	return nil
}
