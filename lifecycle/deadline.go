package lifecycle

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// timerLag is how late a timer may come. A StopContainer that is asked for so long
// after the deadline still has the whole floor.
const timerLag = 100 * time.Millisecond

// deadline is when the grace of a pod, or of one of its containers, is over. It only
// moves earlier.
type deadline struct {
	granted   int64     // seconds, which may be 0 or less for a single container
	since     time.Time // from when they count
	shortened bool      // they are not what was granted first
}

// grant is the deadline of a grace that begins now.
func grant(seconds int64) deadline { return deadline{granted: seconds, since: time.Now()} }

func (d deadline) at() time.Time { return d.since.Add(graceperiod.Duration(d.granted)) }

func (d deadline) isOver() bool { return !time.Now().Before(d.at()) }

// left is the timeout that a StopContainer has now, in seconds: what was used is
// truncated to whole seconds, once. The floor counts from the deadline on, so that a
// stop which has to be asked for again after it gets what is left of the floor, and
// then 0.
func (d deadline) left() int64 {
	left := graceperiod.Remaining(d.granted, time.Since(d.since))
	late := time.Since(d.at())
	if late < timerLag {
		return left
	}
	floor := graceperiod.Duration(graceperiod.MinimumContainerSeconds)
	return min(left, int64(max(floor-late, 0)/time.Second))
}

// cause is why what the deadline ends is ended.
func (d deadline) cause() Cause {
	if d.shortened {
		return Shortened
	}
	return GraceSpent
}

// graceContext is a context whose deadline is that of its container at the time of
// asking: it moves earlier when the grace is shortened. It ends with a [Cause], at the
// deadline or before it.
type graceContext struct {
	context.Context

	container *container
}

// Deadline is when the grace of the container is over.
func (g *graceContext) Deadline() (time.Time, bool) {
	g.container.table.mu.Lock()
	defer g.container.table.mu.Unlock()
	return g.container.deadline.at(), true
}
