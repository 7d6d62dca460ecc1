package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// container is one container in the table of its pod, whose mutex guards it.
type container struct {
	table    *podTable
	pod      *v1.Pod // as it was last seen
	result   ContainerResult
	deadline deadline     // of its stop, and of hooks meanwhile; zero: it was not to be stopped yet
	began    time.Time    // by the status of its pod, zero if that does not say
	endedAt  time.Time    // when nothing more was to be done about it
	run      *run         // that stops it; nil: it is not being stopped
	part     *Termination // that it is a part of, the last of several; nil: of none
	started  bool         // by [Terminator.Start]
	hooked   bool         // its preStop hook has run, or has had its chance
	told     bool         // its Killing event was recorded
	unseen   bool         // Start has started it, and neither request nor status names it
	obsolete bool         // it leaves the table as soon as nothing works for it
	calls    int          // goroutines that work for it

	cancelStart context.CancelCauseFunc // of a Start that is under way; nil: none is
	startBegan  time.Time               // when the last Start began; zero: there was none
	startEnded  time.Time               // when it returned; zero: it has not, or there was none
	startErr    error                   // why it is not known what a start has started
}

// hasEnded tells whether a container was stopped, or given up.
func (c *container) hasEnded() bool { return c.run == nil && c.result.Outcome != "" }

// isToStop tells whether there is something to be done about a container that its
// pod's termination is about. One that is stuck may be asked for again.
func (c *container) isToStop() bool {
	return c.run == nil && (c.result.Outcome == "" || c.isStuck() || c.cancelStart != nil)
}

// isStuck tells whether a container was given up that may run, and can be asked for.
func (c *container) isStuck() bool { return c.result.Outcome == RuntimeStuck && c.result.ID != "" }

// mayRun tells whether a container that nobody has named is to be stopped with its pod.
func (c *container) mayRun(pod *v1.Pod) bool {
	switch {
	case c.cancelStart != nil:
		return true
	case c.run != nil:
		return !c.run.hookOnly
	case c.result.Outcome != "":
		return c.isToStop()
	default: // a call that is under way, of its postStart hook for instance, shows that it ran
		return c.isOfStart() && !hasExited(pod, &c.result, c.startBegan) || c.calls > 0
	}
}

// isOfStart tells whether [Terminator.Start] has started a container, is about to, or may
// have.
func (c *container) isOfStart() bool { return c.started || c.cancelStart != nil || c.startErr != nil }

// isLost tells whether a start has perhaps started a container whose ID nobody knows.
func (c *container) isLost() bool { return c.startErr != nil && c.cancelStart == nil }

// isPartOf tells whether a container is one of a termination's that is under way.
func (c *container) isPartOf(t *Termination) bool {
	return t != nil && t.active != nil && slices.Contains(t.active.containers, c)
}

// endOfGrace is when the grace of a container is over, zero if it has none yet.
func (c *container) endOfGrace() time.Time { return c.deadline.at() }

// limitLocked holds a container that is being stopped to an earlier deadline.
func (c *container) limitLocked(d deadline) {
	if d.at().Before(c.deadline.at()) {
		c.deadline = deadline{granted: d.granted, since: d.since, shortened: true}
	}
}

// beginLocked sends a container on its way to its end, in a goroutine of its own. A
// container that got stuck keeps its deadline. ctx gives values, and must not end.
func (c *container) beginLocked(ctx context.Context, pod *v1.Pod, until deadline, r *run) {
	if c.deadline.since.IsZero() || until.at().Before(c.deadline.at()) {
		c.deadline = until
	}
	r.container, c.pod, c.obsolete = c, pod, false
	r.spec, r.role = findContainer(pod, c.result.Name)
	c.result.Phase, c.result.Outcome, c.result.Err = "", "", nil
	if !c.told {
		c.result.GrantedSeconds = until.granted
	}
	if r.spec == nil {
		// The kubelet's error; there the reason is the message of the event. The container is
		// stopped all the same, without a hook and out of order.
		c.result.Err = fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q",
			c.result.Name, c.result.ID, podText(pod), r.message)
	}
	c.run = r
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if c.table.closed {
		r.endLocked(LeftRunning, nil)
		r.finishLocked()
		return
	}
	c.calls++
	go r.walk()
}

// rest ends a goroutine that works for a container, and lets go of the table.
func (c *container) rest() {
	p := c.table
	c.calls--
	p.tidyLocked()
	p.releaseLocked(podKey(c.pod))
	p.unlock()
}

// spawnLocked calls code of the embedder's for a container in a goroutine of its own,
// which Close waits for. What it gives is handed to then, which has the table.
func (c *container) spawnLocked(ctx context.Context, what string, do func() error, then func(error)) (returned *bool) {
	c.calls++
	returned = new(bool)
	go c.call(ctx, what, c.pod, do, then, returned)
	return returned
}

func (c *container) call(ctx context.Context, what string, pod *v1.Pod, do func() error, then func(error), returned *bool) {
	guarded(ctx, what, pod, c.result.Name, do, func(err error) {
		c.table.mu.Lock()
		then(err)
		*returned = true
		c.rest()
	})
}

// guarded calls code of the embedder's and hands on what it gives. Code that panics,
// or that ends its goroutine, gives an error.
func guarded(ctx context.Context, what string, pod *v1.Pod, name string, do func() error, then func(error)) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = fmt.Errorf("the %s ended its goroutine", what)
			if r := recover(); r != nil {
				err = fmt.Errorf("the %s panicked: %v", what, r)
			}
			klog.FromContext(ctx).Error(err, "Code that was called for a container did not return",
				"pod", klog.KObj(pod), "containerName", name, "stack", string(debug.Stack()))
		}
		then(err)
	}()
	err = do()
	returned = true
}

// noteLocked adds an error to the result of a container, unless that is final.
func (c *container) noteLocked(err error) {
	if err != nil && c.run != nil {
		c.result.Err = errors.Join(c.result.Err, err)
	}
}

// askExitLocked asks the [ExitWatcher] for what is closed when a container exits, and
// waits a while for the answer. It is nil if nobody can tell.
func (c *container) askExitLocked(ctx context.Context) <-chan struct{} {
	exits, id := c.table.terminator.opts.Exits, c.result.ID
	if exits == nil {
		return nil
	}
	var watched <-chan struct{}
	answered := c.spawnLocked(ctx, "exit watcher", func() error {
		watched = exits.Exited(id)
		return nil
	}, c.noteLocked)
	c.table.waitLocked(func() bool { return *answered || c.table.closed }, c.patience(), nil)
	if !*answered {
		return nil
	}
	return watched
}

// answerWithin is how long an [ExitWatcher] is waited for. One that hangs must not cost a
// container its grace.
const answerWithin = 2 * time.Second

// patience is until when an answer to what is asked now is waited for, and no longer than
// the grace of the container.
func (c *container) patience() func() time.Time {
	until := time.Now().Add(answerWithin)
	return func() time.Time { return earlier(until, c.endOfGrace()) }
}

// isClosed tells whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// fullName names a container as [StillRunningError] does.
func fullName(pod *v1.Pod, name string) string { return pod.Namespace + "/" + pod.Name + "/" + name }

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

func (d deadline) at() time.Time { return d.since.Add(graceperiod.Duration(max(d.granted, 0))) }

// isOver tells whether it has come; one that was never set has not.
func (d deadline) isOver() bool { return !d.since.IsZero() && !time.Now().Before(d.at()) }

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
