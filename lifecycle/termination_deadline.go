package lifecycle

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Deadline returns when the grace period ends. Hooks, and waits for other containers, end then, and
// every container has at most [graceperiod.MinimumContainerSeconds] left to stop. The deadline only
// moves earlier. It is the zero time if Terminate has failed.
func (t *Termination) Deadline() time.Time {
	t = t.orNone()
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	return t.deadline.end
}

// Shorten moves the deadline to the given seconds from now if that is earlier, and reports whether it
// did. A value below 1 means 1. The new deadline takes effect at once, for hooks and waits too. If a
// StopContainer call is under way, the terminator makes a second, concurrent call with a shorter
// timeout. Shorten returns false after the termination has ended or the terminator was closed.
func (t *Termination) Shorten(seconds int64) bool {
	t = t.orNone()
	t.pod.mu.Lock()
	shortened := t.inProgress() && t.ctx.Err() == nil && t.shorten(max(seconds, graceperiod.MinimumPodSeconds))
	t.pod.mu.Unlock()
	if shortened {
		klog.FromContext(t.ctx).V(1).Info("Shortened the termination of a pod", "pod", klog.KObj(t.apiPod), "gracePeriod", seconds)
	}
	return shortened
}

// shorten moves the deadline of the termination and of its containers, and reports whether the new one is
// earlier. The mutex is held.
func (t *Termination) shorten(seconds int64) bool {
	until := deadlineIn(seconds)
	until.shortened = true
	if !until.end.Before(t.deadline.end) {
		return false
	}
	t.deadline = until
	for _, s := range t.stops {
		s.shorten(until)
	}
	t.wake()
	return true
}
