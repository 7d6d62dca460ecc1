package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

const (
	maxConcurrentCalls           = 10
	minRetryPause, maxRetryPause = 100 * time.Millisecond, time.Second
	maxSuggestedPause            = 5 * time.Second
	// maxIdleRetryPause is the longest pause while no drain waits.
	maxIdleRetryPause = 30 * time.Second
	callTimeout       = 9 * time.Second
	publishTimeout    = 2 * time.Second
	// unresponsiveAfter is how long a drain waits for an API server that accepts nothing.
	unresponsiveAfter = 2500 * time.Millisecond
)

// apiUpdate is the message about a pod that the API server should get, and the call that sends it.
type apiUpdate struct {
	wanted     Message   // "": none
	sending    Message   // of the call in progress
	call       int       // 0: none is in progress
	until      time.Time // the deadline of the call
	tries      int       // of wanted
	retryAt    time.Time
	notReadyBy time.Time // NotReady is not sent after this time
}

// api is the state of all calls to the API server.
type api struct {
	finalStatuses  []*Pod    // pods with a final status to send, in order; some may have none any more
	readiness      []*Pod    // the same for NotReady and Ready
	calls          []*Pod    // pods with a call in progress
	acceptedAt     time.Time // when it last accepted something; zero: not since publish
	isUnresponsive bool      // a wait for it timed out after acceptedAt
	failure        string    // the last error; "": the last call succeeded
	loggedFailure  string    // the last failure that was logged

	wanted      *nodeState // the state to publish; nil: none yet
	isAccepted  bool       // the API server accepted it
	publishCall int        // 0: none is in progress
	publishing  *nodeState // the state that the call publishes
	until       time.Time  // the deadline of the call
	tries       int
	retryAt     time.Time
}

// nodeState is a published state; a nil Shutdown means that none is in progress.
type nodeState struct{ of *Shutdown }

// isPending reports whether a final status was not accepted yet.
func (n *Node) isPending(p *Pod) bool {
	return n.Options.Steps.Statuses && p.isSignalled() && !p.Ended.IsZero() && !p.Told && p.IsTerminal()
}

// isSendingFinalStatus reports whether a call in progress may still deliver a final status.
func (n *Node) isSendingFinalStatus(p *Pod) bool {
	t := &p.update
	return t.call != 0 && t.sending == FinalStatus && n.now.Before(t.until)
}

// IsTerminal reports whether a pod gets a final status. That depends on its shutdown's policy; a pod
// with a deletion timestamp always gets one.
func (p *Pod) IsTerminal() bool {
	policy := p.Policy
	if policy == Delete && (p.Static || p.DaemonSet) {
		policy = LeaveAsIs
	}
	return policy != LeaveAsIs || p.Deleted
}

// setWanted sets the message that the API server should get about a pod. A call that sends another
// message is cancelled.
func (n *Node) setWanted(p *Pod) {
	t, wanted := &p.update, Message("")
	switch {
	case n.isPending(p):
		wanted = FinalStatus
	case p.awaitsNotReady:
		wanted = NotReady
	case p.Marked && !p.isSignalled() && n.Options.Steps.Readiness && n.state == StateNone:
		wanted = Ready
	}
	if wanted == t.wanted {
		return
	}
	t.wanted, t.tries, t.retryAt = wanted, 0, time.Time{}
	switch wanted {
	case FinalStatus:
		n.api.finalStatuses = append(n.api.finalStatuses, p)
	case NotReady, Ready:
		n.api.readiness = append(n.api.readiness, p)
	}
	if t.call != 0 {
		n.emit(Effect{Do: Abort, Call: t.call})
	}
}

// sendUpdates makes the calls that are due, at most maxConcurrentCalls at once: final statuses first,
// first tries before retries.
func (n *Node) sendUpdates() {
	n.sendNodeState()
	a := &n.api
	a.calls = slices.DeleteFunc(a.calls, func(p *Pod) bool { return p.update.call == 0 })
	free := maxConcurrentCalls
	for _, p := range a.calls {
		if !n.reached(p.update.until) { // a call that ignores its deadline does not count
			free--
		}
	}
	for _, p := range append(n.dueUpdates(&a.finalStatuses, free), n.dueUpdates(&a.readiness, free)...) {
		if free > 0 && p.update.call == 0 {
			free--
			n.sendUpdate(p)
		}
	}
}

// dueUpdates returns the pods of a queue whose calls are due, first tries first.
func (n *Node) dueUpdates(queue *[]*Pod, most int) (due []*Pod) {
	isOver := func(p *Pod) bool {
		wanted := p.update.wanted
		return wanted == "" || (wanted == FinalStatus) != (queue == &n.api.finalStatuses)
	}
	for len(*queue) > 0 && isOver((*queue)[0]) {
		*queue = (*queue)[1:]
	}
	if most <= 0 {
		return nil
	}
	var tried []*Pod
	for _, p := range *queue {
		switch t := &p.update; {
		case isOver(p) || t.call != 0 || !n.reached(t.retryAt):
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

// sendUpdate makes the call for a pod.
func (n *Node) sendUpdate(p *Pod) {
	t := &p.update
	t.sending = t.wanted
	t.tries++
	until := n.now.Add(callTimeout)
	if t.sending == NotReady {
		until = t.notReadyBy
		if !p.Marked {
			p.Marked = true // even a failed call may have set NotReady
			n.markDirty(p)
			n.storeDirty()
		}
	}
	t.until = until
	n.api.calls = append(n.api.calls, p)
	t.call = n.startCall(Effect{Do: Tell, Pod: p, What: t.sending, Until: until})
}

func (t Told) apply(n *Node) {
	p := n.pods.byKey[t.Key]
	isWanted := p != nil && p.update.call == t.Call && p.update.wanted == p.update.sending
	n.api.noteAnswer(n, t.Err, isWanted)
	if p == nil || p.update.call != t.Call {
		return
	}
	told := &p.update
	told.call = 0
	switch {
	case told.wanted != told.sending: // superseded
	case t.Err == nil:
		n.updateAccepted(p, told.sending)
	case told.wanted == NotReady && !n.now.Before(told.notReadyBy):
		n.signalWaiting(p, false)
	default:
		longest := maxRetryPause
		if n.drain.shutdown == nil {
			longest = maxIdleRetryPause
		}
		pause := min(minRetryPause<<min(max(told.tries-1, 0), 10), longest)
		if t.RetryAfter > 0 {
			pause = min(t.RetryAfter, maxSuggestedPause)
		}
		told.retryAt = n.now.Add(pause)
	}
}

// updateAccepted handles a message that the API server accepted.
func (n *Node) updateAccepted(p *Pod, what Message) {
	switch what {
	case FinalStatus:
		p.Told = true
	case NotReady:
		n.signalWaiting(p, true)
	case Ready:
		p.Marked = false
	}
	n.markDirty(p)
	n.setWanted(p)
}

// noteAnswer records the result of a call. An outage is logged once for each cause; an error of a
// superseded call is ignored.
func (a *api) noteAnswer(n *Node, err error, isWanted bool) {
	if err == nil {
		a.failure, a.acceptedAt, a.isUnresponsive = "", n.now, false
		return
	}
	if !isWanted {
		return
	}
	wasFailing := a.failure != ""
	if a.failure = err.Error(); !wasFailing && a.failure != a.loggedFailure {
		a.loggedFailure = a.failure
		n.emit(Effect{Do: LogError, Text: "Failed to update the API server, will retry: " + a.failure})
	}
}

// retryNow makes all pending final statuses due.
func (a *api) retryNow() {
	for _, p := range a.finalStatuses {
		p.update.retryAt = time.Time{}
	}
}

// lastError says why the server has not accepted something.
func (a *api) lastError() string { return cmp.Or(a.failure, "the time for it was spent") }

// apply drops the pending final status of a static pod that starts again.
func (s Start) apply(n *Node) {
	if p := n.pods.byKey[s.Key]; p != nil && p.Static && !n.Refuses() && !p.isTerminating() && !p.Told {
		p.Told = true
		n.markDirty(p)
		n.setWanted(p)
	}
}

// publish sets the node state to publish: the shutdown in progress, or nil for none.
func (n *Node) publish(s *Shutdown) {
	a := &n.api
	if a.wanted != nil && a.wanted.of == s {
		return
	}
	a.wanted, a.isAccepted, a.tries, a.retryAt, a.acceptedAt = &nodeState{of: s}, !n.Options.Steps.Publish, 0, time.Time{}, time.Time{}
	if a.publishCall != 0 {
		n.emit(Effect{Do: Abort, Call: a.publishCall})
	}
	n.sendNodeState()
}

// isPublished reports whether the API server accepted the node's state.
func (n *Node) isPublished() bool { return n.api.isAccepted }

// sendNodeState makes the call that publishes the node's state, if it is due.
func (n *Node) sendNodeState() {
	a := &n.api
	switch {
	case a.wanted == nil || a.isAccepted || !n.reached(a.retryAt):
		return
	case a.publishCall == 0:
	case a.publishing == a.wanted || !n.reached(a.until): // the call of an older state gets until its deadline
		return
	}
	a.tries++
	a.publishing, a.until = a.wanted, n.now.Add(publishTimeout)
	a.publishCall = n.startCall(Effect{Do: Publish, Shutdown: a.wanted.of, Until: a.until})
}

func (p Published) apply(n *Node) {
	a := &n.api
	a.noteAnswer(n, p.Err, p.Call == a.publishCall && a.publishing == a.wanted)
	if p.Call != a.publishCall {
		a.isAccepted = a.isAccepted && p.Err != nil // an older call may have overwritten the wanted state
		return
	}
	a.publishCall = 0
	switch {
	case a.publishing != a.wanted: // publish the newer state before the kills of this step
		n.sendNodeState()
	case p.Err == nil:
		a.isAccepted = true
	default:
		a.retryAt = n.now.Add(min(minRetryPause<<min(max(a.tries-1, 0), 10), maxIdleRetryPause))
	}
}

// PendingStatuses returns the number of final statuses that the API server has not accepted.
func (n *Node) PendingStatuses() (pending int) {
	for _, p := range n.pods.all {
		if n.isPending(p) {
			pending++
		}
	}
	return pending
}

// isFlushed reports whether the wait for final statuses is over: all pods have ended and none is
// pending, or the time is over, or the server is unresponsive. It also waits for terminating pods: a
// pod that uses its whole grace period ends just after it, and its status must be sent before the next
// bucket may end the network.
func (n *Node) isFlushed(of []*Pod, since, until time.Time) bool {
	d, a := &n.drain, &n.api
	isUnflushed := func(p *Pod) bool { return n.isPending(p) || n.Options.Steps.Statuses && p.isTerminating() }
	if a.isUnresponsive || !d.waitsFor(of, isUnflushed) || n.reached(until) {
		return true
	}
	if of[d.firstAwaited].isTerminating() {
		return false
	}
	if !n.reached(times.Later(since, a.acceptedAt).Add(unresponsiveAfter)) {
		return false
	}
	a.isUnresponsive = !a.acceptedAt.After(since)
	return true
}
