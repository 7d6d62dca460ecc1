package lifecycle

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// graceContext is a context whose deadline is that of its termination, at the time
// of asking: it moves earlier when the termination is shortened. It ends with the
// [Cause], at the deadline or before it.
type graceContext struct {
	context.Context

	termination *Termination
}

// Deadline is when the time of the pod is over.
func (c *graceContext) Deadline() (time.Time, bool) { return c.termination.Deadline(), true }

// Deadline is when hooks and waits end and every container has at most
// [graceperiod.MinimumContainerSeconds] left. It only ever moves earlier.
func (t *Termination) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadlineLocked()
}

func (t *Termination) deadlineLocked() time.Time {
	return t.since.Add(graceperiod.Duration(t.granted))
}

// spentLocked tells whether the time of the pod is over.
func (t *Termination) spentLocked() bool {
	return t.left || !time.Now().Before(t.deadlineLocked())
}

// leftLocked is what a container may ask of the runtime now, in seconds: what was
// used is truncated to whole seconds, once, and never less than the floor is left.
func (t *Termination) leftLocked() int64 {
	return graceperiod.Remaining(t.granted, time.Since(t.since))
}

// Shorten moves the deadline to seconds from now, 1 at least, and tells whether that
// is earlier than it was; if it is not, nothing changes. It takes effect at once: a
// hook or a wait ends at the new deadline, and a stop in flight is overtaken by a
// second, parallel StopContainer with less.
func (t *Termination) Shorten(seconds int64) bool {
	seconds = max(seconds, graceperiod.MinimumPodSeconds)
	t.mu.Lock()
	defer t.unlock()
	now := time.Now()
	if t.over || t.left || !now.Add(graceperiod.Duration(seconds)).Before(t.deadlineLocked()) {
		return false
	}
	t.deferLocked(func() {
		klog.FromContext(t.life).V(1).Info("Shortened the termination of a pod", "pod", klog.KObj(t.pod), "gracePeriod", seconds)
	})
	t.granted, t.since, t.cause = seconds, now, Shortened
	if t.timer != nil {
		t.timer.Reset(graceperiod.Duration(seconds))
	}
	for i := range t.containers {
		t.containers[i].overtakeLocked()
		t.containers[i].shortenKillLocked()
	}
	return true
}

// join shortens a termination if a further request for it asks for less.
func (t *Termination) join(pod *v1.Pod, req Request) {
	t.mu.Lock()
	granted := t.granted
	t.mu.Unlock()
	if seconds, shortened := graceperiod.ForPod(pod, granted, req.GracePeriodSeconds); shortened {
		t.Shorten(seconds)
	}
}

// expire is called when the deadline has come.
func (t *Termination) expire() {
	t.mu.Lock()
	defer t.unlock()
	if t.over || !t.spentLocked() {
		return // shortened in the moment that the timer fired
	}
	t.endGrace(t.cause)
	for i := range t.containers {
		c := &t.containers[i]
		t.goLocked(c, c.cutHookLocked(t.cause))
		if c.starting {
			c.neverStartedLocked()
		}
	}
	t.giveTurnsLocked()
}
