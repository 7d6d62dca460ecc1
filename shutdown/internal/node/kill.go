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

// objectForTimetable returns the object from which the timetable reads the pod's grace period. If there is no schedule, a pod
// without a grace period gets the default of 30 s, and not the time of its bucket: the only bucket is as long as the longest grace
// period of any pod.
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
// server has accepted NotReady, or at killBy. It is killed at once if NotReady would not be sent or accepted in time, or would
// change nothing.
func (n *Node) markNotReadyThenKill(p *Pod, killBy time.Time) {
	isAlreadyNotReady := p.Deleted || p.isSignalled()
	isUseful := n.Options.Steps.Readiness && !isAlreadyNotReady
	if isUseful && n.isServerUp() && n.now.Before(killBy) {
		p.awaitsNotReady, p.message.notReadyBy = true, killBy
		n.queueAPIMessage(p)
	} else {
		n.killInCurrentBucket(p)
	}
}

// isServerUp reports whether the API server is taken to be up. It is taken to be down if it has accepted nothing since the node
// state to publish last changed: publish then sets acceptedAt to zero. If the node state is not published, it counts as up.
func (n *Node) isServerUp() bool {
	hasAcceptedSomething := !n.api.acceptedAt.IsZero()
	return hasAcceptedSomething || !n.Options.Steps.Publish
}

// killAfterNotReady kills a pod if its kill waits for NotReady. Call it when that wait is over.
func (n *Node) killAfterNotReady(p *Pod) {
	if p.awaitsNotReady {
		p.awaitsNotReady = false
		n.killInCurrentBucket(p)
	}
}

// killWithoutNotReady kills a pod if its kill still waits for NotReady, because the time to wait is over. The drain's report
// counts the pod.
func (n *Node) killWithoutNotReady(p *Pod) {
	if p.awaitsNotReady {
		n.drain.killedWithoutNotReady++
		n.drain.notReadyFailure = cmp.Or(p.message.failure, n.drain.notReadyFailure)
		n.killAfterNotReady(p)
	}
}

// killInCurrentBucket kills a pod within the window of the current bucket. A pod that an earlier kill has signalled keeps its
// deadline, unless the bucket's wait for its pods ends earlier: that end is then the deadline.
func (n *Node) killInCurrentBucket(p *Pod) {
	d := &n.drain
	if !p.isSignalled() {
		n.recordFirstKill(p)
	} else {
		if !p.isInReportOf(d.shutdown) { // an earlier shutdown has signalled it
			n.addToReport(p, d.shutdown)
		}
		p.shortenDeadline(times.Later(d.window.KillsEnd, n.now))
	}
	p.isKillGivenUp, p.retryKillAt = false, time.Time{} // an earlier kill may have failed
	n.markPodDirty(p)
	n.queueAPIMessage(p)
	n.startKill(p)
}

// recordFirstKill records that the current bucket kills a pod now, for the first time, and with which grace period.
func (n *Node) recordFirstKill(p *Pod) {
	d, s := &n.drain, n.drain.shutdown
	p.SignalledBy, p.Signalled, p.Policy = s.Number, n.now, n.policy(s)
	p.Bucket = s.Timetable.Schedule()[d.bucket].Priority
	p.GrantedSeconds = d.window.Seconds(n.objectForTimetable(p), n.now)
	p.Deadline = n.now.Add(graceperiod.Duration(p.GrantedSeconds))
}

// shortenDeadline moves the pod's deadline to end, if that is earlier. A difference that the lag of a timer explains is ignored: it
// would only repeat the kill.
func (p *Pod) shortenDeadline(end time.Time) {
	if end.Add(times.Lag).Before(p.Deadline) {
		p.Deadline = end
	}
}

// startKill starts a kill of a pod, which lasts until the pod's deadline, unless a kill in progress lasts no longer.
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

// apply handles the result of a kill, which may return after the drain. Without an error the pod has ended.
func (k Killed) apply(n *Node) {
	p := n.pods.byKey[k.Key]
	if p == nil {
		return
	}
	i := slices.IndexFunc(p.killsInProgress, func(inProgress kill) bool { return inProgress.call == k.Call })
	isOfEarlierPod := i < 0 // which had the same key
	if isOfEarlierPod || p.hasEnded() {
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
	n.queueAPIMessage(p)
}

// fail handles the error of a kill: the kill is retried after a pause, unless another kill of the pod may succeed, or a retry is
// pointless. A repeated error is not logged. Only the first error is stored, and later the one at which the kill is given up: a kill
// may fail every second for days, each time with another text, which would fill the disk.
func (k Killed) fail(n *Node, p *Pod) {
	isNewError, isFirstError := k.Err.Error() != p.Error, p.Error == ""
	if isNewError {
		n.emit(Effect{Do: LogError, Pod: p, Text: "Shutdown manager failed killing pod: " + k.Err.Error()})
	}
	if isNewError && isFirstError {
		n.markPodDirty(p)
	}
	p.Outcome, p.Error = k.Outcome, k.Err.Error()
	switch {
	case len(p.killsInProgress) > 0: // another one may succeed
	case k.NoRetry || n.areRetriesOver():
		n.giveUpKill(p)
	default:
		p.retryKillAt = n.now.Add(killRetryPause)
		n.killsToRetry = append(n.killsToRetry, p)
	}
}

// giveUpKill stops retrying the kill of a pod, so that no drain or report waits for the pod's end.
func (n *Node) giveUpKill(p *Pod) {
	p.isKillGivenUp, p.retryKillAt = true, time.Time{}
	n.markPodDirty(p) // fail may not have stored the last error
	n.countInMetrics(p)
	n.queueAPIMessage(p)
}

// countInMetrics counts a pod in the metrics, once in each shutdown: a pod that was given up and ends after all is not counted
// again.
func (n *Node) countInMetrics(p *Pod) {
	if newest := p.newestShutdown(); p.countedIn != newest {
		p.countedIn = newest
		n.emit(Effect{Do: CountPod, Pod: p})
	}
}

// giveUpInterruptedKills gives up the terminating pods whose kill is not in progress: the previous agent has begun it, and this
// agent has not continued it. The report then does not wait for these pods.
func (n *Node) giveUpInterruptedKills() {
	for _, p := range n.pods.all {
		isKillInProgress := len(p.killsInProgress) > 0
		if p.isTerminating() && !isKillInProgress {
			p.isKillGivenUp = true
		}
	}
}

// areRetriesOver reports whether failed kills are no longer retried: no drain is in progress, and the lock is released, the agent
// ends or TerminateAll is over. After a cancellation they are retried, because the node keeps running.
func (n *Node) areRetriesOver() bool {
	isDraining := n.drain.shutdown != nil
	isAfterLastDrain := n.state == StateReleased || n.runEnded || n.terminateAll.isDone
	return isAfterLastDrain && !isDraining
}

// retryKills retries the failed kills whose pause is over.
func (n *Node) retryKills() {
	n.killsToRetry = slices.DeleteFunc(n.killsToRetry, func(p *Pod) (isDone bool) {
		switch {
		case p.retryKillAt.IsZero(): // it was killed again or given up in the meantime
		case !n.reachedOrWakeAt(p.retryKillAt):
			return false
		case n.areRetriesOver():
			n.giveUpKill(p)
		default:
			n.startKill(p)
		}
		return true
	})
}
