package node

import (
	"slices"
	"time"
)

// minListPause and maxListPause bound the pause after a failed list.
const minListPause, maxListPause = 50 * time.Millisecond, time.Second

// lister lists the pods. If a call does not return within a second, another one starts beside it; each
// further unanswered call adds a second to the pause, so that few calls hang.
type lister struct {
	lists             int       // the number of lists received
	isEmpty           bool      // the newest list has no pod
	newest            int       // the call of the newest list
	receivedAt        time.Time // when the newest list was received
	calledAt          time.Time // when the newest call was made
	unanswered        int       // calls since the last result
	failedAt          time.Time // when the last result, an error, was received; zero: it was a list
	pause             time.Duration
	isFailureReported bool // the report has the failure
}

// call starts a list, unless too many have not returned.
func (l *lister) call(n *Node) {
	if l.unanswered > 0 && n.now.Before(l.calledAt.Add(time.Duration(l.unanswered)*answerTimeout)) {
		return
	}
	l.calledAt, l.failedAt = n.now, time.Time{}
	l.unanswered++
	n.startCall(Effect{Do: List})
}

// isFresh reports whether the newest list was received in this step.
func (l *lister) isFresh(n *Node) bool { return l.lists > 0 && l.receivedAt.Equal(n.now) }

// retry starts another list if the last one failed or does not return.
func (l *lister) retry(n *Node) {
	at := l.calledAt.Add(time.Duration(max(l.unanswered, 1)) * answerTimeout)
	if !l.failedAt.IsZero() {
		at = l.failedAt.Add(l.pause)
	}
	if n.reached(at) {
		l.call(n)
	}
}

// reportTimeout adds to the report of the drain that the list timed out, unless a failure was reported.
func (l *lister) reportTimeout(n *Node) {
	if !l.isFailureReported {
		l.isFailureReported = true
		n.reportError(n.drain.shutdown, "the list of the pods did not return in time")
	}
}

// apply handles a list. A list that is older than the newest one is dropped.
func (l Listed) apply(n *Node) {
	lister := &n.lister
	lister.unanswered = 0
	if l.Err != nil {
		lister.failedAt = n.now
		lister.pause = min(max(2*lister.pause, minListPause), maxListPause)
		if s := n.drain.shutdown; s != nil && !lister.isFailureReported {
			lister.isFailureReported = true
			n.reportError(s, "the list of the pods failed: "+l.Err.Error())
		}
		return
	}
	if l.Call < lister.newest {
		return
	}
	lister.newest, lister.failedAt, lister.pause, lister.isFailureReported = l.Call, time.Time{}, 0, false
	lister.isEmpty = len(l.Pods) == 0
	lister.lists++
	lister.receivedAt = n.now
	for i := range l.Pods {
		n.updateFromList(&l.Pods[i])
	}
	n.pods.drop(func(p *Pod) bool { // gone, and not needed by a drain, an update or a report
		return p.listNumber < lister.lists && !p.isTerminating() && !p.awaitsNotReady && !n.isPending(p) && !p.Marked && p.update.call == 0 &&
			!p.belongsTo(n.shutdown) && !p.belongsTo(n.terminateAll.shutdown) && !n.isReported(p)
	})
	n.drain.firstAwaited = 0 // the indexes have changed
}

// updateFromList adds or updates a pod from the newest list. A listed pod that had ended before the drain
// in progress has started again, if the list was requested after that end: its old reports are sent now,
// and the listed pod replaces it. Until its final status is accepted, only a static pod counts as started
// again.
func (n *Node) updateFromList(listed *Pod) {
	p := n.pods.byKey[listed.Key]
	endedBefore := p != nil && !p.Ended.IsZero() && n.drain.shutdown != nil && !p.belongsTo(n.drain.shutdown)
	startedAgain := endedBefore && n.lister.newest > p.lastCallAtEnd && (p.Static || !n.isPending(p))
	if startedAgain {
		for _, s := range slices.Clone(n.reports) {
			if p.belongsTo(s) {
				n.reportNow(s)
			}
		}
		if p.update.call != 0 {
			n.emit(Effect{Do: Abort, Call: p.update.call})
		}
		p.update = apiUpdate{}
	}
	if p == nil || startedAgain {
		p = listed
		n.pods.put(p)
	}
	p.Object, p.Priority, p.Static, p.DaemonSet, p.Deleted = listed.Object, listed.Priority, listed.Static, listed.DaemonSet, listed.Deleted
	p.Marked = p.Marked || listed.Marked && n.Options.Steps.Readiness
	p.listNumber = n.lister.lists
	n.setWanted(p)
}

// isDue reports whether a drain has to kill a pod: it is in the newest list, or was signalled; before
// the first list, also if the log says that a drain planned to kill it.
func (n *Node) isDue(p *Pod) bool {
	return p.Ended.IsZero() && (p.isSignalled() || p.listNumber == n.lister.lists && n.lister.lists > 0 || p.Meant && n.lister.lists == 0)
}
