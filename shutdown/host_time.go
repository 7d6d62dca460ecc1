package shutdown

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// hostTime computes from the options what the host is asked for and when it is released.
type hostTime struct {
	schedule plan.Schedule
	options  plan.Options
}

// requestedDelay returns the delay to ask of the host: the time of a whole drain, or Plan.Limit
// if that is less.
func (h hostTime) requestedDelay() time.Duration {
	total := plan.NewBudget(h.schedule, h.options).Total()
	if h.options.Limit != 0 {
		return min(total, max(h.options.Limit, 0))
	}
	return total
}

// logRequest logs the requested delay and its parts, once.
func (h hostTime) logRequest(ctx context.Context) {
	b, logger := plan.NewBudget(h.schedule, h.options), klog.FromContext(ctx)
	if h.shortensBucket(h.requestedDelay()) {
		logger.Info("The limit of the shutdown options is too short for the schedule, some pods get less time", "limit", h.options.Limit, "schedule", b.Schedule.Total())
	}
	logger.V(1).Info("Asking the host to delay its shutdown", "delay", h.requestedDelay(),
		"pods", b.Schedule.Total(), "hold", b.Hold, "publish", b.Publish, "besideBuckets", b.Overhead()-b.Publish,
		"containersFloor", b.Floor, "releaseMargin", b.Margin)
}

// shortensBucket reports whether some bucket gets less than its configured time if the host waits
// for limit.
func (h hostTime) shortensBucket(limit time.Duration) bool {
	return plan.NewBudget(h.schedule, h.options).Fit(limit).Schedule.Total() < h.schedule.Total()
}

// hostEnd returns when the host goes on by itself after an event; false if that has no limit.
func (h hostTime) hostEnd(event Event, received time.Time) (time.Time, bool) {
	return h.options.HostEnd(plan.Announcement{Received: received, HostEnd: event.Deadline})
}

// unlockAt returns when the lock is released at the latest: half the release margin before the
// host's end. Without an end it is the event plus the time of a whole drain.
func (h hostTime) unlockAt(event Event, received time.Time) time.Time {
	budget := plan.NewBudget(h.schedule, h.options)
	end, limited := h.hostEnd(event, received)
	if !limited {
		return received.Add(budget.Total())
	}
	return end.Add(-budget.Fit(end.Sub(received)).Margin / 2)
}

// drainEnd returns when the wait for pods ends at the latest if the host goes on at the event's
// deadline.
func (h hostTime) drainEnd(event Event, received time.Time) time.Time {
	return event.Deadline.Add(-plan.NewBudget(nil, h.options).Fit(event.Deadline.Sub(received)).Margin)
}

// withSteadyDeadline ties the deadline of an event to the monotonic clock of received. A deadline
// that is a date, as in a cloud's notice, would move with the wall clock.
func withSteadyDeadline(event Event, received time.Time) Event {
	if !event.Deadline.IsZero() {
		event.Deadline = received.Add(event.Deadline.Sub(received))
	}
	return event
}

// margin returns how long before the host's end a drain is over.
func (h hostTime) margin() time.Duration { return plan.NewBudget(nil, h.options).Margin }

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
