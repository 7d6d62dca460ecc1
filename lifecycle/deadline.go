package lifecycle

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// deadline is when the grace period of a pod or of one container ends. It only moves earlier. The pod's
// mutex guards it.
type deadline struct {
	granted   int64 // the grace period in seconds; may be 0 or negative
	end       time.Time
	shortened bool // the grace period was shortened during the termination
}

// deadlineIn returns the deadline of a grace period that begins now. Negative seconds end now.
func deadlineIn(seconds int64) deadline {
	return deadline{granted: seconds, end: time.Now().Add(graceperiod.Duration(max(seconds, 0)))}
}

func (d deadline) hasPassed() bool { return !time.Now().Before(d.end) }

// stopTimeout returns the timeout in seconds of a StopContainer call made now: the remaining grace
// period, but at least 2 s (the kubelet's minimumGracePeriodInSeconds). After the deadline these 2 s count
// from the deadline: a call made 1 s after it gets 1 s, and one made 2 s after it gets 0 s. Otherwise each
// repeated call would add 2 s.
func (d deadline) stopTimeout() int64 {
	sinceEnd := time.Since(d.end) // negative before the deadline
	if sinceEnd < times.Lag {     // timers fire late: a call that was due at the deadline still gets the minimum
		granted := max(d.granted, 0) // as deadlineIn counts it
		elapsed := graceperiod.Duration(granted) + sinceEnd
		return graceperiod.Remaining(granted, elapsed)
	}
	minimum := graceperiod.Duration(graceperiod.MinimumContainerSeconds)
	return int64(max(minimum-sinceEnd, 0) / time.Second)
}

// cause returns the cause with which a hook that still runs at the deadline is cancelled.
func (d deadline) cause() Cause {
	if d.shortened {
		return CauseShortened
	}
	return CauseGraceSpent
}

// graceContext is the parent of a hook's context. Its Deadline returns the container's current deadline,
// so that a hook can see that the deadline has moved earlier; the deadline of a standard context cannot move.
// The context does not end at the deadline by itself: the stop cancels the hook with a [Cause].
type graceContext struct {
	context.Context

	stop *containerStop
}

// Deadline implements [context.Context].
func (g *graceContext) Deadline() (time.Time, bool) {
	g.stop.pod.mu.Lock()
	defer g.stop.pod.mu.Unlock()
	return g.stop.deadline.end, true
}
