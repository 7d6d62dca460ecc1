package node

import (
	"cmp"
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
	call     int
	deadline time.Time // the end of its grace period
}

// grace returns the pod's own grace period in seconds; nil: none.
func (p *Pod) grace() *int64 {
	if p.Object == nil {
		return nil
	}
	return p.Object.Spec.TerminationGracePeriodSeconds
}

// planObject returns the object from which the timetable reads the pod's grace period. If there is no schedule, a pod without a
// grace period gets the default of 30 s: the only bucket is as long as the longest grace period of any pod, which may be more.
func (n *Node) objectForTimetable(p *Pod) *v1.Pod {
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

// markNotReadyThenKill sends NotReady for a pod, so that services send the pod no more requests. The pod is killed once the API
// server has accepted NotReady, or at killBy. It is killed at once if
//
//   - NotReady is off;
//   - NotReady would change nothing, because the pod is deleted or was signalled already;
//   - killBy has come;
//   - or the API server is taken to be down: the node state was to be published first, and the server has accepted nothing since.
func (n *Node) markNotReadyThenKill(p *Pod, killBy time.Time) {
	changesPod := n.Options.Steps.Readiness && !p.Deleted && !p.isSignalled()
	// publish resets acceptedAt.
	isServerUp := !n.Options.Steps.Publish || !n.api.acceptedAt.IsZero()
	if changesPod && isServerUp && n.now.Before(killBy) {
		p.awaitsNotReady, p.message.notReadyBy = true, killBy
		n.queueWantedMessage(p)
	} else {
		n.killInCurrentBucket(p)
	}
}

// killAfterNotReady kills a pod if its kill waits for NotReady. Call it when that wait is over.
func (n *Node) killAfterNotReady(p *Pod) {
	if p.awaitsNotReady {
		p.awaitsNotReady = false
		n.killInCurrentBucket(p)
	}
}

// killWithoutNotReady kills a pod if its kill waits for NotReady, although the API server has not accepted it. The drain's
// report counts the pod.
func (n *Node) killWithoutNotReady(p *Pod) {
	if p.awaitsNotReady {
		n.drain.killedWithoutNotReady++
		n.drain.notReadyFailure = cmp.Or(p.message.failure, n.drain.notReadyFailure)
		n.killAfterNotReady(p)
	}
}

// killInCurrentBucket kills a pod within the window of the current bucket. A pod that was signalled before keeps its
// deadline or gets an earlier one, never a later one. If an earlier shutdown has signalled it, it is now in the report of
// this shutdown too.
func (n *Node) killInCurrentBucket(p *Pod) {
	d := &n.drain
	if !p.isSignalled() {
		p.SignalledBy, p.Policy = d.shutdown.Number, n.policy(d.shutdown)
		p.Bucket = d.shutdown.Timetable.Schedule()[d.bucket].Priority
		p.GrantedSeconds, p.Signalled = d.window.Seconds(n.objectForTimetable(p), n.now), n.now
		p.Deadline = n.now.Add(graceperiod.Duration(p.GrantedSeconds))
	} else {
		if !p.isInReportOf(d.shutdown) {
			n.addToReport(p, d.shutdown)
		}
		p.shortenDeadline(times.Later(d.window.KillsEnd, n.now))
	}
	p.isKillGivenUp, p.retryKillAt = false, time.Time{}
	n.markPodDirty(p)
	n.queueWantedMessage(p)
	n.startKill(p)
}

// shortenDeadline moves the pod's deadline to end if end is earlier by more than the lag of a timer. A smaller
// difference is ignored: it would only repeat the kill.
func (p *Pod) shortenDeadline(end time.Time) {
	if end.Add(times.Lag).Before(p.Deadline) {
		p.Deadline = end
	}
}

// kill starts a kill that lasts until the pod's deadline, unless a kill in progress ends then or earlier.
func (n *Node) startKill(p *Pod) {
	for _, inProgress := range p.killsInProgress {
		if endsInTime := !inProgress.deadline.After(p.Deadline); endsInTime {
			return
		}
	}
	p.retryKillAt = time.Time{}
	call := n.startCallAfterStore(Effect{Do: Kill, Pod: p, Seconds: times.WholeSeconds(p.Deadline.Sub(n.now)), Until: p.Deadline})
	p.killsInProgress = append(p.killsInProgress, kill{call: call, deadline: p.Deadline})
}

// apply handles the result of a kill, even after the drain. Without an error the pod has ended. After an
// error the kill is retried, unless another kill of the pod is in progress or a retry is pointless.
func (k Killed) apply(n *Node) {
	p := n.pods.byKey[k.Key]
	if p == nil {
		return
	}
	i := slices.IndexFunc(p.killsInProgress, func(c kill) bool { return c.call == k.Call })
	if i < 0 || !p.Ended.IsZero() { // the kill was of an earlier pod with this key, or another kill has returned first
		return
	}
	p.killsInProgress = slices.Delete(p.killsInProgress, i, i+1)
	if k.Err != nil {
		k.fail(n, p)
		return
	}
	p.Ended, p.lastCallAtEnd, p.Status, p.Outcome, p.Error = n.now, n.lastCall, k.Status, k.Outcome, ""
	n.markPodDirty(p)
	n.countInMetrics(p)
	n.queueWantedMessage(p)
}

// fail handles the error of a kill.
func (k Killed) fail(n *Node, p *Pod) {
	if k.Err.Error() != p.Error {
		n.emit(Effect{Do: LogError, Pod: p, Text: "Shutdown manager failed killing pod: " + k.Err.Error()})
		n.markPodDirty(p) // not after each error: a kill may fail every second for days, and the log would fill the disk
	}
	p.Outcome, p.Error = k.Outcome, k.Err.Error()
	switch {
	case len(p.killsInProgress) > 0: // another kill of the pod is in progress, and may succeed
	case k.NoRetry || n.isRetryOver():
		n.giveUpKill(p)
	default:
		p.retryKillAt = n.now.Add(killRetryPause)
		n.killsToRetry = append(n.killsToRetry, p)
	}
}

// giveUp stops retrying the kill of a pod, so that no drain or report waits for the pod's end.
func (n *Node) giveUpKill(p *Pod) {
	p.isKillGivenUp, p.retryKillAt = true, time.Time{}
	n.countInMetrics(p)
	n.queueWantedMessage(p)
}

// countInMetrics counts a pod in the metrics, once in each shutdown: a pod that was given up and ends after all is not counted
// again.
func (n *Node) countInMetrics(p *Pod) {
	if newest := p.newestShutdown(); p.countedIn != newest {
		p.countedIn = newest
		n.emit(Effect{Do: CountPod, Pod: p})
	}
}

// giveUpPods gives up the terminating pods whose kill is not in progress, so that the report does not wait for them.
func (n *Node) giveUpPodsWithoutKill() {
	for _, p := range n.pods.all {
		if p.isTerminating() && len(p.killsInProgress) == 0 {
			p.isKillGivenUp = true
		}
	}
}

// isRetryOver reports whether failed kills are no longer retried: no drain is in progress, and the lock is released, the agent
// ends or TerminateAll is over. After a cancellation they are retried, because the node keeps running.
func (n *Node) isRetryOver() bool {
	return n.drain.shutdown == nil && (n.state == StateReleased || n.runEnded || n.terminateAll.isDone)
}

// retryKills retries the failed kills whose pause is over.
func (n *Node) retryKills() {
	n.killsToRetry = slices.DeleteFunc(n.killsToRetry, func(p *Pod) bool {
		switch {
		case p.retryKillAt.IsZero(): // it was killed again or given up in the meantime
		case !n.reachedOrWakeAt(p.retryKillAt):
			return false
		case n.isRetryOver():
			n.giveUpKill(p)
		default:
			n.startKill(p)
		}
		return true // no longer in retrying
	})
}
