package lifecycle

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// deadline is the end of the grace period of a pod, or of one of its containers. It only
// moves earlier.
type deadline struct {
	granted   int64     // the grace period in seconds; 0 or less is possible for a single container
	since     time.Time // the start of the grace period; zero: there is no deadline
	shortened bool      // the grace period is shorter than the one granted first
}

// grant returns the deadline of a grace period that starts now.
func grant(seconds int64) deadline { return deadline{granted: seconds, since: time.Now()} }

// at returns the time of the deadline.
func (d deadline) at() time.Time { return d.since.Add(graceperiod.Duration(max(d.granted, 0))) }

// isOver reports whether there is a deadline and it has passed.
func (d deadline) isOver() bool { return !d.since.IsZero() && !time.Now().Before(d.at()) }

// stopTimeout returns the timeout of a StopContainer that is called now, in seconds: what
// is left of the grace period, at least the minimum of [graceperiod.Remaining]. After the
// deadline that minimum shrinks with time, down to 0, so that calls that are repeated do
// not get the whole minimum again.
func (d deadline) stopTimeout() int64 {
	timeout := graceperiod.Remaining(d.granted, time.Since(d.since))
	late := time.Since(d.at())
	if late < times.Lag { // the call for which the deadline's timer has fired
		return timeout
	}
	minimum := graceperiod.Duration(graceperiod.MinimumContainerSeconds)
	return min(timeout, int64(max(minimum-late, 0)/time.Second))
}

// cause returns why a hook was cut that the deadline ends.
func (d deadline) cause() Cause {
	if d.shortened {
		return Shortened
	}
	return GraceSpent
}

// hookCause returns the cause with which a preStop or postStart hook is cancelled now. exited is
// nil if the exit of the container does not end the hook.
func (d deadline) hookCause(exited <-chan struct{}, closed bool) error {
	switch {
	case isClosed(exited):
		return ContainerExited
	case closed:
		return AgentStopping
	case d.isOver():
		return d.cause()
	default:
		return ErrTerminating // the container was stopped during its postStart hook
	}
}

// graceContext is the context of a hook. Its Deadline is the container's present deadline,
// which moves earlier when the grace period is shortened. The run cancels it, with a
// [Cause], at the deadline or before.
type graceContext struct {
	context.Context

	attempt *attempt
}

// Deadline returns when the grace period of the container ends.
func (g *graceContext) Deadline() (time.Time, bool) {
	g.attempt.mu.Lock()
	defer g.attempt.mu.Unlock()
	return g.attempt.deadline.at(), true
}
