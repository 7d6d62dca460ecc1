package node

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// killPause is the time between a kill that has failed and the next call.
const killPause = time.Second

// kill is a call of the killer that is under way, and the end of the grace period that it knows.
type kill struct {
	call  int
	until time.Time
}

// grace returns the pod's own grace period; nil: it has none.
func (p *Pod) grace() *int64 {
	if p.Object == nil {
		return nil
	}
	return p.Object.Spec.TerminationGracePeriodSeconds
}

// object returns what the timetable reads of a pod. Without a schedule, all have their own grace periods, of which the
// default is Kubernetes': the bucket may be as long as that of a list that is not known.
func (n *Node) object(p *Pod) *v1.Pod {
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

// mark has the pod marked as not ready, so that it leaves its services, and killed after that, at a time at the latest. A pod that
// needs no mark, or cannot have one, is killed at once.
func (n *Node) mark(p *Pod, ready time.Time) {
	isAnswering := !n.Options.Steps.Publish || !n.api.answered.IsZero()
	if !n.Options.Steps.Readiness || p.Deleted || p.isSignalled() || !isAnswering || !n.now.Before(ready) {
		n.signal(p)
		return
	}
	p.isWaiting, p.telling.markBy = true, ready
	n.wish(p)
}

// signalMarked signals a pod that has waited for its mark, and may not have it.
func (n *Node) signalMarked(p *Pod, isMarked bool) {
	if !p.isWaiting {
		return
	}
	if !isMarked {
		n.drain.unmarked++
	}
	p.isWaiting = false
	n.signal(p)
}

// signal has a pod end in the window of the drain. For one that was signalled before, that can only be
// earlier.
func (n *Node) signal(p *Pod) {
	d := &n.drain
	seconds := d.window.Seconds(n.object(p), n.now)
	until := n.now.Add(graceperiod.Duration(seconds))
	switch {
	case !p.isSignalled():
		p.Shutdown, p.Policy, p.Granted, p.Signalled, p.Deadline = d.of.Number, d.of.Policy, seconds, n.now, until
		p.Bucket = d.of.table.Schedule()[d.bucket].Priority
	case !p.isOf(d.of):
		n.join(p, d.of)
		fallthrough
	default:
		p.shorten(times.Later(d.window.KillsEnd, n.now))
	}
	p.isGivenUp, p.retryAt = false, time.Time{}
	n.changed(p)
	n.wish(p)
	n.kill(p)
}

// shorten moves the deadline to an end that is earlier. What a timer lags does not count.
func (p *Pod) shorten(end time.Time) {
	if end.Add(times.Lag).Before(p.Deadline) {
		p.Deadline = end
	}
}

// kill calls the killer, unless a call is under way that knows the end of the grace period.
func (n *Node) kill(p *Pod) {
	for _, k := range p.calls {
		if !p.Deadline.Before(k.until) {
			return
		}
	}
	p.retryAt = time.Time{}
	call := n.beginAfterStore(Effect{Do: Kill, Pod: p, Seconds: times.WholeSeconds(p.Deadline.Sub(n.now)), Until: p.Deadline})
	p.calls = append(p.calls, kill{call: call, until: p.Deadline})
}

// apply takes over the answer of the killer. An answer counts whenever it comes.
func (k Killed) apply(n *Node) {
	p := n.pods.byKey[k.Key]
	if p == nil {
		return
	}
	i := slices.IndexFunc(p.calls, func(c kill) bool { return c.call == k.Call })
	if i < 0 || !p.Ended.IsZero() { // a static pod has begun anew, or another call has said so
		return
	}
	p.calls = slices.Delete(p.calls, i, i+1)
	p.Outcome = k.Outcome
	n.changed(p)
	if k.Err == nil {
		p.Ended, p.endedAt, p.Status, p.Error = n.now, n.lastCall, k.Status, ""
		n.do(Effect{Do: CountPod, Pod: p})
		n.wish(p)
		return
	}
	if k.Err.Error() != p.Error {
		n.do(Effect{Do: LogError, Pod: p, Text: "Shutdown manager failed killing pod: " + k.Err.Error()})
	}
	p.Error = k.Err.Error()
	switch {
	case len(p.calls) > 0:
	case k.NoRetry || n.isLate():
		n.giveUp(p)
	default:
		p.retryAt = n.now.Add(killPause)
		n.retrying = append(n.retrying, p)
	}
}

// giveUp says that no call of the killer follows.
func (n *Node) giveUp(p *Pod) {
	p.isGivenUp, p.retryAt = true, time.Time{}
	n.do(Effect{Do: CountPod, Pod: p})
	n.wish(p)
}

// giveUpPods gives up the pods of a shutdown whose time is over and that no call is under way for.
func (n *Node) giveUpPods() {
	for _, p := range n.pods.all {
		if p.runs() && len(p.calls) == 0 {
			p.isGivenUp = true
		}
	}
}

// isLate reports whether a kill that has failed is not repeated: the lock is released. The pods of a
// cancelled shutdown are killed until they have ended, because the node stays.
func (n *Node) isLate() bool {
	return n.drain.of == nil && (n.state == StateReleased || n.isEnding || n.all.isOver())
}

// retryKills repeats the kills that have failed.
func (n *Node) retryKills() {
	n.retrying = slices.DeleteFunc(n.retrying, func(p *Pod) bool {
		switch {
		case p.retryAt.IsZero():
		case !n.passed(p.retryAt):
			return false
		case n.isLate():
			n.giveUp(p)
		default:
			n.kill(p)
		}
		return true
	})
}
