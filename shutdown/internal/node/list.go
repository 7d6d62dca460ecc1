package node

import (
	"slices"
	"time"
)

// firstListPause and longestListPause bound the pause after a list that has failed.
const firstListPause, longestListPause = 50 * time.Millisecond, time.Second

// lister asks for the pods. A call that does not return is asked again beside it after a second, and
// with each further one a second later, so that not many hang.
type lister struct {
	lists      int       // complete ones so far
	isEmpty    bool      // the newest has no pod
	newest     int       // the call of the newest one
	got        time.Time // when the newest came
	asked      time.Time // when the newest call was made
	unanswered int       // calls since the last answer
	failed     time.Time // when the last answer came, if it was an error; zero: it was a list
	pause      time.Duration
	hasFail    bool // the failure is in the report
}

// ask makes a call, unless many do not return.
func (l *lister) ask(n *Node) {
	if l.unanswered > 0 && n.now.Before(l.asked.Add(time.Duration(l.unanswered)*answerTime)) {
		return
	}
	l.asked, l.failed = n.now, time.Time{}
	l.unanswered++
	n.begin(Effect{Do: List})
}

// isNew reports whether the newest list came in this step.
func (l *lister) isNew(n *Node) bool { return l.lists > 0 && l.got.Equal(n.now) }

// askAgain makes another call if the last one has failed, or does not return.
func (l *lister) askAgain(n *Node) {
	at := l.asked.Add(time.Duration(max(l.unanswered, 1)) * answerTime)
	if !l.failed.IsZero() {
		at = l.failed.Add(l.pause)
	}
	if n.passed(at) {
		l.ask(n)
	}
}

// isLate adds to the report of the drain that the list has not returned, unless it has that it fails.
func (l *lister) isLate(n *Node) {
	if !l.hasFail {
		l.hasFail = true
		n.fail(n.drain.of, "the list of the pods did not return in time")
	}
}

// apply takes over a list. What an older call gives comes late, and counts only if nothing newer is
// known.
func (l Listed) apply(n *Node) {
	lister := &n.lister
	lister.unanswered = 0
	if l.Err != nil {
		lister.failed = n.now
		lister.pause = min(max(2*lister.pause, firstListPause), longestListPause)
		if s := n.drain.of; s != nil && !lister.hasFail {
			lister.hasFail = true
			n.fail(s, "the list of the pods failed: "+l.Err.Error())
		}
		return
	}
	if l.Call < lister.newest {
		return
	}
	lister.newest, lister.failed, lister.pause, lister.hasFail = l.Call, time.Time{}, 0, false
	lister.isEmpty = len(l.Pods) == 0
	lister.lists++
	lister.got = n.now
	for i := range l.Pods {
		n.seen(&l.Pods[i])
	}
	n.pods.drop(func(p *Pod) bool { // nobody has to do with it any more
		return p.listed < lister.lists && !p.runs() && !p.isWaiting && !n.isPending(p) && !p.Marked && p.telling.call == 0 &&
			!p.isOf(n.shutdown) && !p.isOf(n.all.shutdown) && !n.isReported(p)
	})
	n.drain.waited = 0 // the list is another one
}

// seen takes over what a list says of a pod. One that had ended in an earlier shutdown runs again, unless it
// may not start yet.
func (n *Node) seen(listed *Pod) {
	p := n.pods.byKey[listed.Key]
	isAgain := p != nil && !p.Ended.IsZero() && (p.Static || !n.isPending(p)) && n.drain.of != nil && !p.isOf(n.drain.of) && n.lister.newest > p.endedAt
	if isAgain {
		for _, s := range slices.Clone(n.reports) {
			if p.isOf(s) {
				n.reportNow(s)
			}
		}
		if p.telling.call != 0 {
			n.do(Effect{Do: Abort, Call: p.telling.call})
		}
		p.telling = telling{}
	}
	if p == nil || isAgain {
		p = listed
		n.pods.put(p)
	}
	p.Object, p.Priority, p.Static, p.DaemonSet, p.Deleted = listed.Object, listed.Priority, listed.Static, listed.DaemonSet, listed.Deleted
	p.Marked = p.Marked || listed.Marked && n.Options.Steps.Readiness
	p.listed = n.lister.lists
	n.wish(p)
}

// isDue reports whether a drain has to kill a pod: it is in the newest list, or was signalled, or is
// meant and no list is known.
func (n *Node) isDue(p *Pod) bool {
	return p.Ended.IsZero() && (p.isSignalled() || p.listed == n.lister.lists && n.lister.lists > 0 || p.Meant && n.lister.lists == 0)
}
