package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

const (
	maxConcurrentCalls = 10 // about pods; publishing the node's state does not count
	// minRetryPause is the first pause between two tries of a call. It doubles up to maxRetryPause while a
	// drain waits, and up to maxIdleRetryPause otherwise.
	minRetryPause, maxRetryPause = 100 * time.Millisecond, time.Second
	maxIdleRetryPause            = 30 * time.Second
	// maxSuggestedPause bounds the pause that the server asks for, so that it cannot delay a drain for long.
	maxSuggestedPause = 5 * time.Second
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
	finalStatuses  []*Pod    // pods with a final status to send, in order; some of them may need none any more
	readiness      []*Pod    // the same for NotReady and Ready
	calls          []*Pod    // pods with a call in progress
	acceptedAt     time.Time // when it last accepted something; zero: nothing since the node state last changed
	isUnresponsive bool      // a wait for it timed out after acceptedAt
	failure        string    // the last error; "": the last call succeeded
	loggedFailure  string    // the last failure that was logged

	wanted      *nodeState // the node state to publish; nil: none yet
	isAccepted  bool       // the API server accepted wanted
	publishCall int        // 0: none is in progress
	publishing  *nodeState // the state that the call publishes
	until       time.Time  // the deadline of the call
	tries       int
	retryAt     time.Time
}

// nodeState is a published state; a nil Shutdown means that none is in progress.
type nodeState struct{ of *Shutdown }

// isPending reports whether the pod has ended and the API server has not accepted its final status yet. It is
// false for pods that get none.
func (n *Node) isPending(p *Pod) bool {
	hasEndedAfterKill := p.isSignalled() && !p.Ended.IsZero()
	return n.Options.Steps.Statuses && p.IsTerminal() && hasEndedAfterKill && !p.Told
}

// isSendingFinalStatus reports whether a call in progress may still deliver a final status, even if that is not
// wanted any more. The pod must not start meanwhile: the status would end it at the API server.
func (n *Node) isSendingFinalStatus(p *Pod) bool {
	update := &p.update
	return update.call != 0 && update.sending == FinalStatus && n.now.Before(update.until)
}

// FinalPolicy returns the policy that applies to the pod: that of its shutdown, with two exceptions. Like kubectl drain,
// Delete does not delete static pods and pods of a DaemonSet, which would be created again on the same node. A pod with
// a deletion timestamp always gets a final status, because its deletion waits for that.
func (p *Pod) FinalPolicy() Policy {
	policy := p.Policy
	if policy == Delete && (p.Static || p.DaemonSet) {
		policy = LeaveAsIs
	}
	if policy == LeaveAsIs && p.Deleted {
		policy = SetTerminal
	}
	return policy
}

// IsTerminal reports whether the pod gets a final status.
func (p *Pod) IsTerminal() bool { return p.FinalPolicy() != LeaveAsIs }

// updateWanted decides which message the API server should get about a pod now, if any, and queues it. It is
// called after each change of the pod or the state. A call that sends another message is cancelled.
func (n *Node) updateWanted(p *Pod) {
	update, wanted := &p.update, Message("")
	switch {
	case n.isPending(p):
		wanted = FinalStatus
	case p.awaitsNotReady:
		wanted = NotReady
	case p.Marked && !p.isSignalled() && n.Options.Steps.Readiness && n.state == StateNone:
		wanted = Ready // the shutdown was cancelled before the pod was killed
	}
	if wanted == update.wanted {
		return
	}
	update.wanted, update.tries, update.retryAt = wanted, 0, time.Time{}
	switch wanted {
	case FinalStatus:
		n.api.finalStatuses = append(n.api.finalStatuses, p)
	case NotReady, Ready:
		n.api.readiness = append(n.api.readiness, p)
	}
	if update.call != 0 {
		n.emit(Effect{Do: Abort, Call: update.call})
	}
}

// sendUpdates makes the calls that are due, so that at most maxConcurrentCalls are in progress. Final statuses
// go before readiness, and first tries before retries.
func (n *Node) sendUpdates() {
	n.sendNodeState()
	a := &n.api
	a.calls = slices.DeleteFunc(a.calls, func(p *Pod) bool { return p.update.call == 0 })
	free := maxConcurrentCalls
	for _, p := range a.calls {
		if !n.reachedOrWakeAt(p.update.until) { // a call that ignores its deadline must not block others
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

// dueUpdates returns the pods of a queue whose calls are due, first tries first. With most or more first
// tries it returns only those. It removes pods from the queue that have no message of its kind to send any
// more.
func (n *Node) dueUpdates(queue *[]*Pod, most int) (due []*Pod) {
	isOver := func(p *Pod) bool { // nothing is wanted any more, or a message of the other queue
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
		switch update := &p.update; {
		case isOver(p) || update.call != 0 || !n.reachedOrWakeAt(update.retryAt): // nothing to send now
		case update.tries > 0:
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

// sendUpdate starts the call that sends the wanted message of a pod.
func (n *Node) sendUpdate(p *Pod) {
	update := &p.update
	update.sending = update.wanted
	update.tries++
	until := n.now.Add(callTimeout)
	if update.sending == NotReady {
		until = update.notReadyBy
		if !p.Marked {
			p.Marked = true // even a call that fails may set NotReady, which must be undone if the pod is spared
			n.markPodDirty(p)
			n.storeDirty()
		}
	}
	update.until = until
	n.api.calls = append(n.api.calls, p)
	update.call = n.startCall(Effect{Do: Tell, Pod: p, What: update.sending, Until: until})
}

// apply handles the result of a call about a pod. After an error it schedules a retry, unless the message is
// not wanted any more, or the time for NotReady is over: the pod is then killed without it. The pause before the retry
// doubles with each try, from minRetryPause to maxRetryPause, or to maxIdleRetryPause if no drain is in progress. If the
// server asks for a pause, it is that one, at most maxSuggestedPause.
func (t Told) apply(n *Node) {
	p := n.pods.byKey[t.Key]
	isCurrent := p != nil && p.update.call == t.Call // not of an earlier pod with this key
	isWanted := isCurrent && p.update.wanted == p.update.sending
	n.api.noteAnswer(n, t.Err, isWanted)
	if !isCurrent {
		return
	}
	update := &p.update
	update.call = 0
	switch {
	case !isWanted:
	case t.Err == nil:
		n.updateAccepted(p, update.sending)
	case update.wanted == NotReady && !n.now.Before(update.notReadyBy):
		n.endNotReadyWait(p, false)
	default:
		longest := maxRetryPause
		if n.drain.shutdown == nil {
			longest = maxIdleRetryPause
		}
		pause := min(minRetryPause<<min(max(update.tries-1, 0), 10), longest)
		if t.RetryAfter > 0 {
			pause = min(t.RetryAfter, maxSuggestedPause)
		}
		update.retryAt = n.now.Add(pause)
	}
}

// updateAccepted handles a message that the API server accepted. A pod that is now NotReady is killed.
func (n *Node) updateAccepted(p *Pod, what Message) {
	switch what {
	case FinalStatus:
		p.Told = true
	case NotReady:
		n.endNotReadyWait(p, true)
	case Ready:
		p.Marked = false
	}
	n.markPodDirty(p)
	n.updateWanted(p)
}

// noteAnswer records the result of a call. It logs the first error of an outage, unless that was the last one
// logged. isWanted is false if the call's message is not wanted any more: its error is ignored, because the
// call was aborted.
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

// retryNow makes all pending final statuses due, because a drain begins: it must not wait for a retry that was
// scheduled up to 30 s later.
func (a *api) retryNow() {
	for _, p := range a.finalStatuses {
		p.update.retryAt = time.Time{}
	}
}

// lastError says why the server has not accepted something: its last error, or no error but too little time.
func (a *api) lastError() string { return cmp.Or(a.failure, "the time for it was spent") }

// apply drops the pending final status of a static pod that starts again, as if it had been accepted: the new pod
// has the same UID, and would be ended by it. The old pod has ended, also if its kill was given up, so that the next
// shutdown gives the new one its own grace period. The status is kept if the pod may not start now, because all pods
// are refused or its own kill is not over.
func (s Start) apply(n *Node) {
	p := n.pods.byKey[s.Key]
	if p == nil || !p.Static || p.Told {
		return
	}
	if mayStart := !n.Refuses() && !p.isTerminating(); mayStart {
		if p.isGivenUp {
			p.Ended, p.lastCallAtEnd, p.isGivenUp = n.now, n.lastCall, false
		}
		p.Told = true
		n.markPodDirty(p)
		n.updateWanted(p)
	}
}

// publish makes s the node state to publish, nil if no shutdown is in progress, and begins to send it, unless s is that
// already. A call that sends an older state is aborted. Without Options.Steps.Publish the state counts as accepted.
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

// sendNodeState starts the call that publishes the node's state, if it is due. One is in progress at a time, so
// that an older state does not overwrite a newer one.
func (n *Node) sendNodeState() {
	a := &n.api
	switch {
	case a.wanted == nil || a.isAccepted || !n.reachedOrWakeAt(a.retryAt):
		return
	case a.publishCall == 0: // no call is in progress
	case a.publishing == a.wanted || !n.reachedOrWakeAt(a.until): // a call with an older state has time to end
		return
	}
	a.tries++
	a.publishing, a.until = a.wanted, n.now.Add(publishTimeout)
	a.publishCall = n.startCall(Effect{Do: Publish, Shutdown: a.wanted.of, Until: a.until})
}

// apply handles the result of a call that publishes the node's state. It sends the state again if that failed, after a
// pause that doubles with each try, and at once if there is a newer state or this late call may have overwritten it.
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

// finishFlush returns true once a stage, which has begun at since, need not wait for the pods' final statuses any more:
// all are accepted, or until has come, or the server has accepted nothing for unresponsiveAfter. If it has accepted
// nothing in the whole stage, later stages do not wait for it at all.
//
// It also waits for terminating pods. A pod that uses its whole grace period ends just after that. Its status
// must be sent before the next bucket, which may have the pods of the network.
func (n *Node) finishFlush(pods []*Pod, since, until time.Time) (isOver bool) {
	d, a := &n.drain, &n.api
	isAwaited := func(p *Pod) bool { return n.isPending(p) || n.Options.Steps.Statuses && p.isTerminating() }
	if a.isUnresponsive || !d.findAwaited(pods, isAwaited) || n.reachedOrWakeAt(until) {
		return true
	}
	if pods[d.firstAwaited].isTerminating() { // the server has nothing to accept yet
		return false
	}
	if !n.reachedOrWakeAt(times.Later(since, a.acceptedAt).Add(unresponsiveAfter)) {
		return false
	}
	a.isUnresponsive = !a.acceptedAt.After(since)
	return true
}
