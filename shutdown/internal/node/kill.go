package node

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// killRetryPause is the pause before a failed kill is retried.
const killRetryPause = time.Second

// kill is a kill in progress.
type kill struct {
	call int
	// the end of the grace period that it got
	until time.Time
}

// grace returns the pod's own grace period; nil: none.
func (p *Pod) grace() *int64 {
	if p.Object == nil {
		return nil
	}
	return p.Object.Spec.TerminationGracePeriodSeconds
}

// planObject returns the object that the timetable reads. Without a schedule a pod without a grace
// period has the default of 30 s.
func (n *Node) planObject(p *Pod) *v1.Pod {
	object := p.Object
	if object == nil {
		object = &v1.Pod{}
	}
	if len(n.Schedule) == 0 && p.grace() == nil {
		seconds := defaultSeconds
		object = object.DeepCopy()
		object.Spec.TerminationGracePeriodSeconds = &seconds
	}
	return object
}

// markNotReady has the pod set NotReady, so that it leaves its services, and killed after that, at
// ready at the latest. If that is disabled, pointless or impossible, it kills the pod at once.
func (n *Node) markNotReady(p *Pod, ready time.Time) {
	isAnswering := !n.Options.Steps.Publish || !n.api.acceptedAt.IsZero()
	if !n.Options.Steps.Readiness || p.Deleted || p.isSignalled() || !isAnswering || !n.now.Before(ready) {
		n.signal(p)
		return
	}
	p.awaitsNotReady, p.update.notReadyBy = true, ready
	n.setWanted(p)
}

// signalWaiting kills a pod that waited for NotReady.
func (n *Node) signalWaiting(p *Pod, isMarked bool) {
	if !p.awaitsNotReady {
		return
	}
	if !isMarked {
		n.drain.unmarked++
	}
	p.awaitsNotReady = false
	n.signal(p)
}

// signal kills a pod within the window of the drain. If the pod was signalled before, its deadline can
// only move earlier.
func (n *Node) signal(p *Pod) {
	d := &n.drain
	seconds := d.window.Seconds(n.planObject(p), n.now)
	until := n.now.Add(graceperiod.Duration(seconds))
	switch {
	case !p.isSignalled():
		p.Shutdown, p.Policy, p.Granted, p.Signalled, p.Deadline = d.shutdown.Number, d.shutdown.Policy, seconds, n.now, until
		p.Bucket = d.shutdown.table.Schedule()[d.bucket].Priority
	case !p.belongsTo(d.shutdown):
		n.addToShutdown(p, d.shutdown)
		fallthrough
	default:
		p.shortenDeadline(times.Later(d.window.KillsEnd, n.now))
	}
	p.isGivenUp, p.retryAt = false, time.Time{}
	n.markDirty(p)
	n.setWanted(p)
	n.kill(p)
}

// shortenDeadline moves the deadline earlier, unless the difference is within a timer's lag.
func (p *Pod) shortenDeadline(end time.Time) {
	if end.Add(times.Lag).Before(p.Deadline) {
		p.Deadline = end
	}
}

// kill starts a kill, unless one in progress has the same or an earlier deadline.
func (n *Node) kill(p *Pod) {
	for _, k := range p.calls {
		if !p.Deadline.Before(k.until) {
			return
		}
	}
	p.retryAt = time.Time{}
	call := n.startCallAfterStore(Effect{Do: Kill, Pod: p, Seconds: times.WholeSeconds(p.Deadline.Sub(n.now)), Until: p.Deadline})
	p.calls = append(p.calls, kill{call: call, until: p.Deadline})
}

// apply handles the result of a kill, even if it is late.
func (k Killed) apply(n *Node) {
	p := n.pods.byKey[k.Key]
	if p == nil {
		return
	}
	i := slices.IndexFunc(p.calls, func(c kill) bool { return c.call == k.Call })
	if i < 0 || !p.Ended.IsZero() { // a static pod started again, or another call ended the pod
		return
	}
	p.calls = slices.Delete(p.calls, i, i+1)
	p.Outcome = k.Outcome
	n.markDirty(p)
	if k.Err == nil {
		p.Ended, p.lastCallAtEnd, p.Status, p.Error = n.now, n.lastCall, k.Status, ""
		n.emit(Effect{Do: CountPod, Pod: p})
		n.setWanted(p)
		return
	}
	if k.Err.Error() != p.Error {
		n.emit(Effect{Do: LogError, Pod: p, Text: "Shutdown manager failed killing pod: " + k.Err.Error()})
	}
	p.Error = k.Err.Error()
	switch {
	case len(p.calls) > 0:
	case k.NoRetry || n.isRetryOver():
		n.giveUp(p)
	default:
		p.retryAt = n.now.Add(killRetryPause)
		n.retrying = append(n.retrying, p)
	}
}

// giveUp stops retrying the kill of a pod.
func (n *Node) giveUp(p *Pod) {
	p.isGivenUp, p.retryAt = true, time.Time{}
	n.emit(Effect{Do: CountPod, Pod: p})
	n.setWanted(p)
}

// giveUpPods gives up terminating pods without a kill in progress.
func (n *Node) giveUpPods() {
	for _, p := range n.pods.all {
		if p.isTerminating() && len(p.calls) == 0 {
			p.isGivenUp = true
		}
	}
}

// isRetryOver reports whether failed kills are not retried, because the lock is released. After a
// cancellation they are, because the node keeps running.
func (n *Node) isRetryOver() bool {
	return n.drain.shutdown == nil && (n.state == StateReleased || n.runEnded || n.terminateAll.isOver())
}

// retryKills retries failed kills that are due.
func (n *Node) retryKills() {
	n.retrying = slices.DeleteFunc(n.retrying, func(p *Pod) bool {
		switch {
		case p.retryAt.IsZero():
		case !n.reached(p.retryAt):
			return false
		case n.isRetryOver():
			n.giveUp(p)
		default:
			n.kill(p)
		}
		return true
	})
}
