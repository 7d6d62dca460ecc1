package lifecycle

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// deadline is the end of the grace period of a pod or of one container. It only moves earlier. The
// pod's mutex guards it.
type deadline struct {
	granted   int64 // the grace period in seconds; 0 or less is possible
	end       time.Time
	shortened bool // the grace period is shorter than the one granted first
}

// deadlineIn returns the deadline of a grace period that begins now.
func deadlineIn(seconds int64) deadline {
	return deadline{granted: seconds, end: time.Now().Add(graceperiod.Duration(max(seconds, 0)))}
}

// hasPassed reports whether the deadline has passed.
func (d deadline) hasPassed() bool { return !time.Now().Before(d.end) }

// stopTimeout returns the timeout of a StopContainer that is called now, in seconds: the rest of the
// grace period, but at least 2 (the kubelet's minimumGracePeriodInSeconds). After the deadline this
// minimum shrinks to 0 second by second. Otherwise each repeated call would grant 2 s more.
func (d deadline) stopTimeout() int64 {
	granted := max(d.granted, 0)
	elapsed := graceperiod.Duration(granted) - time.Until(d.end)
	timeout := graceperiod.Remaining(granted, elapsed)
	late := time.Since(d.end)
	if late < times.Lag { // a call made at the deadline may start a moment late, and still gets the minimum
		return timeout
	}
	minimum := graceperiod.Duration(graceperiod.MinimumContainerSeconds)
	return min(timeout, int64(max(minimum-late, 0)/time.Second))
}

// cause returns the cause with which the deadline cuts a hook.
func (d deadline) cause() Cause {
	if d.shortened {
		return CauseShortened
	}
	return CauseGraceSpent
}

// graceContext is the parent of a hook's context. It reports the present deadline of the container's
// stop, which may move earlier; the deadline of a standard context cannot move. The context itself sets
// no timer: the stop cancels the hook with a [Cause].
type graceContext struct {
	context.Context

	stop *stop
}

// Deadline returns when the container's grace period ends now.
func (g *graceContext) Deadline() (time.Time, bool) {
	g.stop.pod.mu.Lock()
	defer g.stop.pod.mu.Unlock()
	return g.stop.deadline.end, true
}
