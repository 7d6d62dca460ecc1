package node

import (
	"slices"
	"time"
)

// minListPause and maxListPause are the shortest and the longest pause after a failed list.
const minListPause, maxListPause = 50 * time.Millisecond, time.Second

// lister lists the pods. If a call does not return within a second, another call starts although the first still runs.
// Each call that has not returned makes the next one wait a second longer, so that a function that hangs is not called
// every second.
type lister struct {
	listCount         int           // how many lists were received
	isNewestEmpty     bool          // the newest list has no pod
	newestCall        int           // the number of the call that returned the newest list
	receivedAt        time.Time     // when the newest list was received
	calledAt          time.Time     // when the newest call was made
	callsSinceResult  int           // how many calls were made since the last result
	failedAt          time.Time     // when the last result, an error, was received; zero: the last result was a list
	pause             time.Duration // after the last error
	isFailureReported bool          // the drain's report has the failure
}

// timeToReturn is how long the newest call has to return before another one is made. It grows with each call, until one returns,
// so that calls that hang do not pile up.
func (l *lister) timeToReturn() time.Duration {
	return time.Duration(l.callsSinceResult) * answerTimeout
}

// call lists the pods, unless the newest call still has time to return.
func (l *lister) call(n *Node) {
	if n.now.Before(l.calledAt.Add(l.timeToReturn())) {
		return
	}
	l.calledAt, l.failedAt = n.now, time.Time{}
	l.callsSinceResult++
	n.startCall(Effect{Do: List})
}

// isFresh reports whether the newest list was received in this step, so that another list would say the same.
func (l *lister) isFresh(n *Node) bool { return l.listCount > 0 && l.receivedAt.Equal(n.now) }

// retryWhenDue lists the pods again after the pause that follows a failed call, or when the newest call has had its time to
// return. Until then it does nothing, but has Step called again at that time.
func (l *lister) retryWhenDue(n *Node) {
	at := l.calledAt.Add(max(l.timeToReturn(), answerTimeout))
	if hasFailed := !l.failedAt.IsZero(); hasFailed {
		at = l.failedAt.Add(l.pause)
	}
	if n.reachedOrWakeAt(at) {
		l.call(n)
	}
}

// reportTimeout adds to the drain's report that the list timed out, unless the report already has a failure of the list. A bucket
// that begins when the drain's time is almost used up waits for its list for less than answerTimeout, and uses an earlier list:
// that is no failure.
func (l *lister) reportTimeout(n *Node) {
	d := &n.drain
	usesEarlierList := d.stage == listing && l.listCount > 0
	isWaitCutShort := n.now.Before(d.stageBegan.Add(answerTimeout))
	isNoFailure := usesEarlierList && isWaitCutShort
	if isNoFailure || l.isFailureReported {
		return
	}
	l.isFailureReported = true
	n.reportError(d.shutdown, "the list of the pods did not return in time")
}

// fail records that a call has failed: the next one follows after a pause, which doubles with each failure. The first failure
// since the last list is added to the drain's report.
func (l *lister) fail(n *Node, err error) {
	l.failedAt = n.now
	l.pause = min(max(2*l.pause, minListPause), maxListPause)
	if s := n.drain.shutdown; s != nil && !l.isFailureReported {
		l.isFailureReported = true
		n.reportError(s, "the list of the pods failed: "+err.Error())
	}
}

// succeed records that a call has returned a list, which becomes the newest one.
func (l *lister) succeed(n *Node, list Listed) {
	l.newestCall = list.Call
	l.isNewestEmpty = len(list.Pods) == 0
	l.receivedAt = n.now
	l.listCount++
	l.failedAt = time.Time{}
	l.pause = 0
	l.isFailureReported = false
}

// apply updates the known pods from a list, and forgets those that are no longer needed. A failed list changes no pod. Lists may
// arrive in another order than they were requested: one that is older than the newest known list is ignored.
func (l Listed) apply(n *Node) {
	lister := &n.lister
	lister.callsSinceResult = 0
	if l.Err != nil {
		lister.fail(n, l.Err)
		return
	}
	if l.Call < lister.newestCall {
		return
	}
	lister.succeed(n, l)
	for i := range l.Pods {
		n.updateFromList(&l.Pods[i])
	}
	n.pods.drop(n.isForgettable)
	n.drain.awaitedIndex = 0 // drop has moved pods, so nextAwaited must search from the first one again
}

// isInNewestList reports whether the newest list has the pod.
func (n *Node) isInNewestList(p *Pod) bool { return p.lastListedIn == n.lister.listCount }

// isNewestListAfterEndOf reports whether the newest list was requested after the pod had ended. An older list may still have it.
func (n *Node) isNewestListAfterEndOf(p *Pod) bool { return n.lister.newestCall > p.lastCallAtEnd }

// isForgettable reports whether the newest list lacks a pod, and no kill, message to the API server or report needs the pod.
func (n *Node) isForgettable(p *Pod) bool {
	needsKill := p.isTerminating() || p.awaitsNotReady
	needsMessage := n.isStatusPending(p) || p.MayShowNotReady || p.message.call != 0
	needsReport := p.isInReportOf(n.shutdown) || p.isInReportOf(n.terminateAll.shutdown) || n.isInQueuedReport(p)
	isNeeded := needsKill || needsMessage || needsReport
	return !isNeeded && !n.isInNewestList(p)
}

// hasStartedAgain reports whether the pod of the newest list that has the known pod's key is a new pod. The known pod must have
// ended before the drain in progress began, and the list must have been requested after that end. While the final status of the
// old pod is pending, only a static pod may start.
func (n *Node) hasStartedAgain(known *Pod) bool {
	endedBeforeDrain := known.hasEnded() && n.drain.shutdown != nil && !known.isInReportOf(n.drain.shutdown)
	mayStart := known.Static || !n.isStatusPending(known)
	return endedBeforeDrain && n.isNewestListAfterEndOf(known) && mayStart
}

// updateFromList adds or updates a pod from the newest list. If the pod has started again, the new one replaces the known one, so
// that this drain kills it too.
func (n *Node) updateFromList(listed *Pod) {
	p := n.pods.byKey[listed.Key]
	startedAgain := p != nil && n.hasStartedAgain(p)
	if startedAgain {
		n.finishOldPod(p)
	}
	if p == nil || startedAgain {
		p = listed
		n.pods.put(p)
	}
	p.Object, p.Priority, p.Static, p.DaemonSet, p.Deleted = listed.Object, listed.Priority, listed.Static, listed.DaemonSet, listed.Deleted
	if listed.MayShowNotReady && n.Options.Steps.Readiness { // an earlier agent may have left it NotReady
		p.MayShowNotReady = true
	}
	p.lastListedIn = n.lister.listCount
	n.queueAPIMessage(p)
}

// finishOldPod makes the queued reports that include a pod, and sends no more messages about it, because a new pod with its key is
// about to replace it.
func (n *Node) finishOldPod(p *Pod) {
	for _, s := range slices.Clone(n.queuedReports) {
		if p.isInReportOf(s) {
			n.reportNow(s)
		}
	}
	n.abortMessage(p)
	p.message = messageState{} // the queues of messages then drop p
}

// mustBeKilled reports whether a drain has to kill a pod: it has not ended, and it was signalled or is in the newest list. Before
// the first list, the pods that the previous agent planned to kill take the place of the listed ones.
func (n *Node) mustBeKilled(p *Pod) bool {
	isRunning := n.isInNewestList(p)
	if isBeforeFirstList := n.lister.listCount == 0; isBeforeFirstList {
		isRunning = p.KillPlanned
	}
	return !p.hasEnded() && (p.isSignalled() || isRunning)
}
