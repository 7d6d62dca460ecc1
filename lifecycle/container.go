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

// container is one container in the table of its pod. The mutex of the table guards it.
type container struct {
	table       *podTable
	pod         *v1.Pod // as last passed by the caller
	result      ContainerResult
	deadline    deadline     // of its hook, wait and stop; zero: it was never to be stopped
	startedAt   time.Time    // by the status of its pod; zero: the status does not say
	endedAt     time.Time    // when it had ended or was given up
	run         *run         // that stops it; nil: it is not being stopped
	termination *Termination // that it was last included in; nil: in none
	started     bool         // by [Terminator.Start]
	hookDone    bool         // its preStop hook has run, is running, or was skipped
	announced   bool         // its Killing event was recorded
	unlisted    bool         // Start has started it, but neither the request nor the status has it
	obsolete    bool         // it is removed from the table once nothing is under way for it
	goroutines  int          // number of goroutines that are at work for it
	starting    startCall
}

// startCall is the last call of [Terminator.Start] for a container.
type startCall struct {
	cancel     context.CancelCauseFunc // of the call that is under way; nil: none is
	calledAt   time.Time               // zero: there was no call
	returnedAt time.Time               // zero: there was no call, or it has not returned
	err        error                   // set if it is not known whether the call has started a container
}

// hasEnded tells whether a container has ended, or was given up.
func (c *container) hasEnded() bool { return c.run == nil && c.result.Outcome != "" }

// isToStop tells whether a termination has to stop the container. It does so again for a
// container that is stuck.
func (c *container) isToStop() bool {
	return c.run == nil && (c.result.Outcome == "" || c.isStuck() || c.starting.cancel != nil)
}

// isStuck tells whether a container with a known ID was given up and may still run.
func (c *container) isStuck() bool { return c.result.Outcome == RuntimeStuck && c.result.ID != "" }

// mayRun tells whether a container must be stopped with its pod even if neither the request
// nor the status names it.
func (c *container) mayRun(pod *v1.Pod) bool {
	switch {
	case c.starting.cancel != nil:
		return true
	case c.run != nil:
		return !c.run.hookOnly
	case c.result.Outcome != "":
		return c.isToStop()
	default: // a goroutine, for instance of its postStart hook, shows that the container ran
		return c.isOfStart() && !hasExited(pod, &c.result, c.starting.calledAt) || c.goroutines > 0
	}
}

// isOfStart tells whether [Terminator.Start] has started the container, is starting it, or
// may have started it.
func (c *container) isOfStart() bool {
	return c.started || c.starting.cancel != nil || c.starting.err != nil
}

// mayHaveStarted tells whether a call of [Terminator.Start] has failed in such a way that
// it may have started a container, whose ID is then not known.
func (c *container) mayHaveStarted() bool { return c.starting.err != nil && c.starting.cancel == nil }

// isPartOf tells whether the container is one of a termination that is under way.
func (c *container) isPartOf(t *Termination) bool {
	return t != nil && t.active != nil && slices.Contains(t.active.containers, c)
}

// deadlineTime returns the time of the deadline, zero if there is none.
func (c *container) deadlineTime() time.Time { return c.deadline.at() }

// limitLocked gives a container that is being stopped the deadline d if that is earlier.
func (c *container) limitLocked(d deadline) {
	if d.at().Before(c.deadline.at()) {
		c.deadline = deadline{granted: d.granted, since: d.since, shortened: true}
	}
}

// startRunLocked starts the goroutine that runs the hook of a container and stops it. A
// container that is stuck keeps its deadline if that is earlier. ctx gives values, and must
// not end.
func (c *container) startRunLocked(ctx context.Context, pod *v1.Pod, until deadline, r *run) {
	if c.deadline.since.IsZero() || until.at().Before(c.deadline.at()) {
		c.deadline = until
	}
	r.container, c.pod, c.obsolete = c, pod, false
	r.spec, r.role = findContainer(pod, c.result.Name)
	c.result.Phase, c.result.Outcome, c.result.Err = "", "", nil
	if !c.announced {
		c.result.GrantedSeconds = until.granted
	}
	if r.spec == nil {
		// This is the kubelet's error, in which the reason is the message of the event. The
		// container is stopped all the same, without a hook and without regard to the order.
		c.result.Err = fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q",
			c.result.Name, c.result.ID, podText(pod), r.message)
	}
	c.run = r
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if c.table.closed {
		r.setOutcomeLocked(LeftRunning, nil)
		r.finishLocked()
		return
	}
	c.goroutines++
	go r.execute()
}

// doneAndUnlock is called with the mutex held at the end of a goroutine that was at work
// for a container. It cleans up the table and unlocks it.
func (c *container) doneAndUnlock() {
	p := c.table
	c.goroutines--
	p.removeObsoleteLocked()
	p.removeIfEmptyLocked(podKey(c.pod))
	p.unlock()
}

// spawnLocked calls do, which is code of the embedder, for a container in a new goroutine,
// and then calls then with the error, with the mutex held. Close waits for the goroutine.
// returned is set when the call has ended; the mutex guards it. what names the code in
// error texts.
func (c *container) spawnLocked(ctx context.Context, what string, do func() error, then func(error)) (returned *bool) {
	c.goroutines++
	returned = new(bool)
	go c.call(ctx, what, c.pod, do, then, returned)
	return returned
}

// call is the goroutine of spawnLocked.
func (c *container) call(ctx context.Context, what string, pod *v1.Pod, do func() error, then func(error), returned *bool) {
	guarded(ctx, what, pod, c.result.Name, do, func(err error) {
		c.table.mu.Lock()
		then(err)
		*returned = true
		c.doneAndUnlock()
	})
}

// guarded calls do, which is code of the embedder, and then calls then with its error. If
// do panics or ends its goroutine, that is logged and becomes the error.
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

// addErrorLocked adds an error to the result of a container that is being stopped. The
// result of any other container is final.
func (c *container) addErrorLocked(err error) {
	if err != nil && c.run != nil {
		c.result.Err = errors.Join(c.result.Err, err)
	}
}

// watchExitLocked returns the channel of the [ExitWatcher] that is closed when the
// container exits. It is nil if there is no watcher, or if the watcher does not answer in
// time.
func (c *container) watchExitLocked(ctx context.Context) <-chan struct{} {
	exits, id := c.table.terminator.opts.Exits, c.result.ID
	if exits == nil {
		return nil
	}
	var watched <-chan struct{}
	answered := c.spawnLocked(ctx, "exit watcher", func() error {
		watched = exits.Exited(id)
		return nil
	}, c.addErrorLocked)
	latest := time.Now().Add(exitWatcherTimeout)
	c.table.waitLocked(func() bool { return *answered || c.table.closed },
		func() time.Time { return earlier(latest, c.deadlineTime()) }, nil)
	if !*answered {
		return nil
	}
	return watched
}

// exitWatcherTimeout is how long the answer of an [ExitWatcher] is waited for, so that a
// watcher that hangs does not use up the grace period.
const exitWatcherTimeout = 2 * time.Second

// isClosed tells whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// fullName returns the name of a container in a [StillRunningError].
func fullName(pod *v1.Pod, name string) string { return pod.Namespace + "/" + pod.Name + "/" + name }

// timerLag is how late a timer may fire. A StopContainer that is called up to that long
// after the deadline still has the whole minimum timeout.
const timerLag = 100 * time.Millisecond

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

// isOver tells whether there is a deadline and it has passed.
func (d deadline) isOver() bool { return !d.since.IsZero() && !time.Now().Before(d.at()) }

// stopTimeout returns the timeout of a StopContainer that is called now, in seconds: what
// is left of the grace period, at least the minimum of [graceperiod.Remaining]. After the
// deadline that minimum shrinks with time, down to 0, so that calls that are repeated do
// not get the whole minimum again.
func (d deadline) stopTimeout() int64 {
	timeout := graceperiod.Remaining(d.granted, time.Since(d.since))
	late := time.Since(d.at())
	if late < timerLag {
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

// graceContext is the context of a hook. Its Deadline is the container's present deadline,
// which moves earlier when the grace period is shortened. The run cancels it, with a
// [Cause], at the deadline or before.
type graceContext struct {
	context.Context

	container *container
}

// Deadline returns when the grace period of the container ends.
func (g *graceContext) Deadline() (time.Time, bool) {
	g.container.table.mu.Lock()
	defer g.container.table.mu.Unlock()
	return g.container.deadline.at(), true
}
