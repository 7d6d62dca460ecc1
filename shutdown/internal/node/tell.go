package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

const (
	callsAtOnce              = 10
	firstPause, longestPause = 100 * time.Millisecond, time.Second
	longestSuggestedPause    = 5 * time.Second
	// longestIdlePause is that for which no drain waits.
	longestIdlePause = 30 * time.Second
	callTime         = 9 * time.Second
	publishTime      = 2 * time.Second
	// patience is how long a server that accepts nothing is waited for.
	patience = 2500 * time.Millisecond
)

// telling is what the API server is to be told of a pod, and is being told.
type telling struct {
	wish   Message   // "": nothing
	what   Message   // of the call that is under way
	call   int       // 0: none is under way
	until  time.Time // when the call returns at the latest
	tries  int       // of the wish
	due    time.Time
	markBy time.Time // a mark that is sent later is not worth it
}

// api is what the API server has been told, and how it answers.
type api struct {
	final    []*Pod    // have a final status to tell, in order, and some that have none any more
	marks    []*Pod    // the same of other messages
	calls    []*Pod    // of which a call is under way
	answered time.Time // when it has accepted something last; zero: not since the state that is wanted is published
	inVain   bool      // a wait for it was, since
	failure  string    // of the last answer; "": it was none
	logged   string    // the last failure that was logged

	wanted      *nodeState // to be published; nil: nothing was yet
	isAccepted  bool       // the API server has it
	publishCall int        // 0: none is under way
	publishing  *nodeState // by that call
	until       time.Time  // when it returns at the latest
	tries       int
	due         time.Time
}

// nodeState is the state that is published.
type nodeState struct{ of *Shutdown } // nil: the node does not shut down

// isPending reports whether the API server has not accepted the final status of a pod that has ended.
func (n *Node) isPending(p *Pod) bool {
	return n.Options.Steps.Statuses && p.isSignalled() && !p.Ended.IsZero() && !p.Told && p.IsTerminal()
}

// isTellingEnd reports whether a call is under way that may still tell the API server that a pod has ended.
func (n *Node) isTellingEnd(p *Pod) bool {
	t := &p.telling
	return t.call != 0 && t.what == FinalStatus && n.now.Before(t.until)
}

// IsTerminal reports whether a pod gets a final status: by the policy of the shutdown that has killed
// it. One whose deletion waits for its end gets it always.
func (p *Pod) IsTerminal() bool {
	policy := p.Policy
	if policy == Delete && (p.Static || p.DaemonSet) {
		policy = LeaveAsIs
	}
	return policy != LeaveAsIs || p.Deleted
}

// wish works out what the API server is to be told of a pod. A call that tells something else is
// aborted.
func (n *Node) wish(p *Pod) {
	t, wish := &p.telling, Message("")
	switch {
	case n.isPending(p):
		wish = FinalStatus
	case p.isWaiting:
		wish = NotReady
	case p.Marked && !p.isSignalled() && n.Options.Steps.Readiness && n.state == StateNone:
		wish = Ready
	}
	if wish == t.wish {
		return
	}
	t.wish, t.tries, t.due = wish, 0, time.Time{}
	switch wish {
	case FinalStatus:
		n.api.final = append(n.api.final, p)
	case NotReady, Ready:
		n.api.marks = append(n.api.marks, p)
	}
	if t.call != 0 {
		n.do(Effect{Do: Abort, Call: t.call})
	}
}

// tell makes the calls of the API server that are due, ten at once: final statuses first, and what was
// not tried before what was.
func (n *Node) tell() {
	n.tellState()
	a := &n.api
	a.calls = slices.DeleteFunc(a.calls, func(p *Pod) bool { return p.telling.call == 0 })
	free := callsAtOnce
	for _, p := range a.calls {
		if !n.passed(p.telling.until) { // one that does not return in time is in nobody's way
			free--
		}
	}
	for _, p := range append(n.dueOf(&a.final, free), n.dueOf(&a.marks, free)...) {
		if free > 0 && p.telling.call == 0 {
			free--
			n.tellOf(p)
		}
	}
}

// dueOf returns the first pods of a queue of which a call is due: first those that were not tried.
func (n *Node) dueOf(queue *[]*Pod, most int) (due []*Pod) {
	isOver := func(p *Pod) bool {
		wish := p.telling.wish
		return wish == "" || (wish == FinalStatus) != (queue == &n.api.final)
	}
	for len(*queue) > 0 && isOver((*queue)[0]) {
		*queue = (*queue)[1:]
	}
	if most <= 0 {
		return nil
	}
	var tried []*Pod
	for _, p := range *queue {
		switch t := &p.telling; {
		case isOver(p) || t.call != 0 || !n.passed(t.due):
		case t.tries > 0:
			tried = append(tried, p)
		default:
			if due = append(due, p); len(due) == most {
				return due
			}
		}
	}
	*queue = slices.DeleteFunc(*queue, isOver)
	return append(due, tried...)
}

// tellOf makes a call about a pod.
func (n *Node) tellOf(p *Pod) {
	t := &p.telling
	t.what = t.wish
	t.tries++
	until := n.now.Add(callTime)
	if t.what == NotReady {
		until = t.markBy
		if !p.Marked {
			p.Marked = true // the server may have it from now on
			n.changed(p)
			n.store()
		}
	}
	t.until = until
	n.api.calls = append(n.api.calls, p)
	t.call = n.begin(Effect{Do: Tell, Pod: p, What: t.what, Until: until})
}

// apply takes over the answer of the API server about a pod.
func (t Told) apply(n *Node) {
	p := n.pods.byKey[t.Key]
	isWanted := p != nil && p.telling.call == t.Call && p.telling.wish == p.telling.what
	n.api.heard(n, t.Err, isWanted)
	if p == nil || p.telling.call != t.Call {
		return
	}
	told := &p.telling
	told.call = 0
	switch {
	case told.wish != told.what: // it is not wanted any more
	case t.Err == nil:
		n.accepted(p, told.what)
	case told.wish == NotReady && !n.now.Before(told.markBy):
		n.signalMarked(p, false)
	default:
		longest := longestPause
		if n.drain.of == nil {
			longest = longestIdlePause
		}
		pause := min(firstPause<<min(max(told.tries-1, 0), 10), longest)
		if t.RetryAfter > 0 {
			pause = min(t.RetryAfter, longestSuggestedPause)
		}
		told.due = n.now.Add(pause)
	}
}

// accepted takes over that the API server has accepted a message.
func (n *Node) accepted(p *Pod, what Message) {
	switch what {
	case FinalStatus:
		p.Told = true
	case NotReady:
		n.signalMarked(p, true)
	case Ready:
		p.Marked = false
	}
	n.changed(p)
	n.wish(p)
}

// heard takes over whether the server has accepted something. That it does not any more is logged once for
// each cause. The error of a call that is not wanted any more says nothing.
func (a *api) heard(n *Node, err error, isWanted bool) {
	if err == nil {
		a.failure, a.answered, a.inVain = "", n.now, false
		return
	}
	if !isWanted {
		return
	}
	wasFailing := a.failure != ""
	if a.failure = err.Error(); !wasFailing && a.failure != a.logged {
		a.logged = a.failure
		n.do(Effect{Do: LogError, Text: "The API server was not told, will try again: " + a.failure})
	}
}

// tryAgain has the final statuses that are pending tried at once, because a drain begins.
func (a *api) tryAgain() {
	for _, p := range a.final {
		p.telling.due = time.Time{}
	}
}

// cause returns why the server has not accepted something.
func (a *api) cause() string { return cmp.Or(a.failure, "the time for it was spent") }

// apply takes back the final status of a static pod, which is started again under its key.
func (s Start) apply(n *Node) {
	if p := n.pods.byKey[s.Key]; p != nil && p.Static && !n.Refuses() && !p.runs() && !p.Told {
		p.Told = true
		n.changed(p)
		n.wish(p)
	}
}

// publish has the node's state published: that it shuts down, or, for nil, that it does not.
func (n *Node) publish(s *Shutdown) {
	a := &n.api
	if a.wanted != nil && a.wanted.of == s {
		return
	}
	a.wanted, a.isAccepted, a.tries, a.due, a.answered = &nodeState{of: s}, !n.Options.Steps.Publish, 0, time.Time{}, time.Time{}
	if a.publishCall != 0 {
		n.do(Effect{Do: Abort, Call: a.publishCall})
	}
	n.tellState()
}

// isPublished reports whether the API server has the node's state.
func (n *Node) isPublished() bool { return n.api.isAccepted }

// tellState publishes the node's state if that is due.
func (n *Node) tellState() {
	a := &n.api
	switch {
	case a.wanted == nil || a.isAccepted || !n.passed(a.due):
		return
	case a.publishCall == 0:
	case a.publishing == a.wanted || !n.passed(a.until): // one that ignores its end is in nobody's way
		return
	}
	a.tries++
	a.publishing, a.until = a.wanted, n.now.Add(publishTime)
	a.publishCall = n.begin(Effect{Do: Publish, Shutdown: a.wanted.of, Until: a.until})
}

// apply takes over the answer about the node's state.
func (p Published) apply(n *Node) {
	a := &n.api
	a.heard(n, p.Err, p.Call == a.publishCall && a.publishing == a.wanted)
	if p.Call != a.publishCall {
		a.isAccepted = a.isAccepted && p.Err != nil // an older state may have replaced the one that is wanted
		return
	}
	a.publishCall = 0
	switch {
	case a.publishing != a.wanted: // there is a newer one, which comes before the kills of this step
		n.tellState()
	case p.Err == nil:
		a.isAccepted = true
	default:
		a.due = n.now.Add(min(firstPause<<min(max(a.tries-1, 0), 10), longestIdlePause))
	}
}

// PendingStatuses returns how many final statuses are pending.
func (n *Node) PendingStatuses() (pending int) {
	for _, p := range n.pods.all {
		if n.isPending(p) {
			pending++
		}
	}
	return pending
}

// isTold reports whether the wait for the final statuses of pods is over: all have ended and none is
// pending, its time is over, or the server accepts nothing. A pod that has used all of its grace period
// ends a moment after it, and its status must not meet a network that the next bucket has ended.
func (n *Node) isTold(of []*Pod, since, until time.Time) bool {
	d, a := &n.drain, &n.api
	willTell := func(p *Pod) bool { return n.isPending(p) || n.Options.Steps.Statuses && p.runs() }
	if a.inVain || !d.waitsFor(of, willTell) || n.passed(until) {
		return true
	}
	if of[d.waited].runs() {
		return false
	}
	if !n.passed(times.Later(since, a.answered).Add(patience)) {
		return false
	}
	a.inVain = !a.answered.After(since)
	return true
}
