package lifecycle

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Deadline returns the end of the grace period. Hooks and waits for other containers end then, and each
// container has up to [graceperiod.MinimumContainerSeconds] left to stop. The deadline only moves
// earlier. It is the zero time if Terminate failed.
func (t *Termination) Deadline() time.Time {
	t = t.orEndedIfUnset()
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	return t.deadline.end
}

// Shorten moves the deadline to seconds from now if that is earlier, and reports whether it did. Values
// below 1 count as 1. The new deadline applies at once to hooks and waits. If a StopContainer call is
// in progress, the terminator makes a concurrent second call with a shorter timeout. Shorten returns
// false after the termination has ended or the terminator was closed.
func (t *Termination) Shorten(seconds int64) bool {
	t = t.orEndedIfUnset()
	seconds = max(seconds, graceperiod.MinimumPodSeconds)
	t.pod.mu.Lock()
	shortened := t.inProgress() && t.ctx.Err() == nil && t.shorten(seconds)
	t.pod.mu.Unlock()
	if shortened {
		klog.FromContext(t.ctx).V(1).Info("Shortened the pod's grace period", "pod", klog.KObj(t.apiPod), "gracePeriod", seconds)
	}
	return shortened
}

// shorten moves the deadline of the termination and of its containers to seconds from now. If that is not earlier, it
// changes nothing and returns false. The caller holds the mutex.
func (t *Termination) shorten(seconds int64) bool {
	newDeadline := deadlineIn(seconds)
	newDeadline.shortened = true
	if !newDeadline.end.Before(t.deadline.end) {
		return false
	}
	t.deadline = newDeadline
	for _, s := range t.stops {
		s.shorten(newDeadline)
	}
	t.pod.wake()
	return true
}
