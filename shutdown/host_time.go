package shutdown

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// hostTime is what a host is asked for and when it is let go, as far as that is known from
// the options alone.
type hostTime struct {
	schedule plan.Schedule
	options  plan.Options
}

// wish is what the host is asked to wait for: all that a drain needs, or the limit
// that an operator has set.
func (h hostTime) wish() time.Duration {
	total := plan.NewBudget(h.schedule, h.options).Total()
	if h.options.Limit != 0 {
		return min(total, max(h.options.Limit, 0))
	}
	return total
}

// log says once what the host is asked to wait for, part by part.
func (h hostTime) log(ctx context.Context) {
	b, logger := plan.NewBudget(h.schedule, h.options), klog.FromContext(ctx)
	if h.cuts(h.wish()) {
		logger.Info("The limit of the shutdown options is too short for the schedule, some pods get less time", "limit", h.options.Limit, "schedule", b.Schedule.Total())
	}
	logger.V(1).Info("Asking the host to delay its shutdown", "delay", h.wish(),
		"pods", b.Schedule.Total(), "hold", b.Hold, "publish", b.Publish, "besideBuckets", b.Overhead()-b.Publish,
		"containersFloor", b.Floor, "releaseMargin", b.Margin)
}

// cuts tells whether a host that waits for limit leaves a bucket less than its own.
func (h hostTime) cuts(limit time.Duration) bool {
	return plan.NewBudget(h.schedule, h.options).Fit(limit).Schedule.Total() < h.schedule.Total()
}

// end is when the host goes on by itself after an event; false: it has no end.
func (h hostTime) end(event Event, received time.Time) (time.Time, bool) {
	return h.options.HostEnd(plan.Announcement{Received: received, HostEnd: event.Deadline})
}

// unlock is when the lock is released at the latest: half of the margin before the host's
// end, or when all is over that the drain needs.
func (h hostTime) unlock(event Event, received time.Time) time.Time {
	budget := plan.NewBudget(h.schedule, h.options)
	end, limited := h.end(event, received)
	if !limited {
		return received.Add(budget.Total())
	}
	return end.Add(-budget.Fit(end.Sub(received)).Margin / 2)
}

// release is when the waiting for pods ends at the latest where the host goes on at the
// deadline of an event.
func (h hostTime) release(event Event, received time.Time) time.Time {
	return event.Deadline.Add(-plan.NewBudget(nil, h.options).Fit(event.Deadline.Sub(received)).Margin)
}

// steady has the deadline of an event count from when the event was received. One that came
// as a date, as in the notices of clouds, would move with the wall clock otherwise.
func steady(event Event, received time.Time) Event {
	if !event.Deadline.IsZero() {
		event.Deadline = received.Add(event.Deadline.Sub(received))
	}
	return event
}

// margin is how long before the host's end a drain is over.
func (h hostTime) margin() time.Duration { return plan.NewBudget(nil, h.options).Margin }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
