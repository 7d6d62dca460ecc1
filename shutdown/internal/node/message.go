package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

const (
	maxConcurrentCalls = 10 // about pods; publishing the node's state does not count
	// minRetryPause is the pause after the first failed try. It doubles with each try, up to maxRetryPause in a drain and
	// up to maxIdleRetryPause otherwise.
	minRetryPause, maxRetryPause = 100 * time.Millisecond, time.Second
	maxIdleRetryPause            = 30 * time.Second
	// maxSuggestedPause bounds the pause that the server asks for, so that it cannot delay a drain for long.
	maxSuggestedPause = 5 * time.Second
	callTimeout       = 9 * time.Second // of a call about a pod, but NotReady must be accepted by notReadyBy
	publishTimeout    = 2 * time.Second // of a call that publishes the node's state
	// unresponsiveAfter is how long a drain waits for an API server that accepts nothing.
	unresponsiveAfter = 2500 * time.Millisecond
)

// messageState is the message about a pod that the API server should get, and the call that sends it.
type messageState struct {
	wanted     Message   // "": none
	sending    Message   // what the call in progress sends
	call       int       // the call in progress; 0: none
	deadline   time.Time // of the call
	tries      int       // how many calls were made for wanted
	failure    string    // the last error of a call for wanted; "": none
	retryAt    time.Time
	notReadyBy time.Time // NotReady is not sent after this time
}

// api is the state of all calls to the API server: those about pods, and the one that publishes the node's state.
type api struct {
	finalStatuses  []*Pod    // the queue of pods with a final status to send; some of them may need none any more
	readiness      []*Pod    // the queue of pods with a NotReady or Ready to send; some of them may need none any more
	podsBeingSent  []*Pod    // the pods that the calls in progress are about
	acceptedAt     time.Time // when the server last accepted something; zero: not since the wanted node state changed
	isUnresponsive bool      // a wait for the server was in vain since acceptedAt: no stage waits for it now
	failure        string    // the last error; "": the last call succeeded
	loggedFailure  string    // the last failure that was logged

	wantedState     *nodeStateToPublish // nil: none yet
	isStateAccepted bool                // the API server has accepted wantedState
	publishCall     int                 // the call in progress; 0: none
	sentState       *nodeStateToPublish // the state that the call publishes
	publishDeadline time.Time           // of the call
	publishTries    int                 // how many calls were made for wantedState
	publishFailure  string              // the last error of a call for wantedState; "": none
	publishRetryAt  time.Time
}

// nodeStateToPublish is whether a shutdown is in progress, which the API server should know. A nil shutdown means that none is.
type nodeStateToPublish struct{ shutdown *Shutdown }

// isStatusPending reports whether the pod has ended and gets a final status, which the API server has not accepted yet.
func (n *Node) isStatusPending(p *Pod) bool {
	hasEndedAfterKill := p.isSignalled() && p.hasEnded()
	getsStatus := n.Options.Steps.Statuses && p.GetsFinalStatus()
	return hasEndedAfterKill && getsStatus && !p.StatusAccepted
}

// isSendingFinalStatus reports whether a call in progress may still deliver the pod's final status, even if that is not wanted
// any more. Until the call is over the pod must not start again: the status would end the new run at the API server.
func (n *Node) isSendingFinalStatus(p *Pod) bool {
	message := &p.message
	return message.call != 0 && message.sending == FinalStatus && n.now.Before(message.deadline)
}

// FinalPolicy returns the policy that applies to the pod: Policy, with two exceptions. Like kubectl drain,
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

// GetsFinalStatus reports whether the pod gets a final status once it has ended.
func (p *Pod) GetsFinalStatus() bool { return p.FinalPolicy() != LeaveAsIs }

// queueAPIMessage queues the message about a pod that the API server should get now, if there is one and it is not queued yet. A
// call that sends another message is cancelled. Call it after each change of the pod or of the node's State.
func (n *Node) queueAPIMessage(p *Pod) {
	message, wanted := &p.message, n.wantedMessage(p)
	if wanted == message.wanted {
		return
	}
	message.wanted, message.tries, message.failure, message.retryAt = wanted, 0, "", time.Time{}
	switch wanted {
	case FinalStatus:
		n.api.finalStatuses = append(n.api.finalStatuses, p)
	case NotReady, ReadyAgain:
		n.api.readiness = append(n.api.readiness, p)
	}
	n.abortMessage(p)
}

// wantedMessage returns the message about a pod that the API server should get now; "": none.
func (n *Node) wantedMessage(p *Pod) Message {
	keepsRunning := n.state == StateNone && !p.isSignalled() // the shutdown was cancelled before the pod was killed
	mustUndoNotReady := p.MayShowNotReady && keepsRunning && n.Options.Steps.Readiness
	switch {
	case n.isStatusPending(p):
		return FinalStatus
	case p.awaitsNotReady:
		return NotReady
	case mustUndoNotReady:
		return ReadyAgain
	default:
		return ""
	}
}

// abortMessage cancels the call that sends a message about a pod, if there is one.
func (n *Node) abortMessage(p *Pod) {
	if p.message.call != 0 {
		n.emit(Effect{Do: Abort, Call: p.message.call})
	}
}

// mustAwaitCall reports whether a call about the pod must return before the next one is made, so that messages arrive in
// order. A final status waits for a call about readiness only until the deadline of that call, which may ignore its context:
// the readiness of a pod that has ended does not matter.
func (n *Node) mustAwaitCall(p *Pod) bool {
	message := &p.message
	mayOvertake := message.wanted == FinalStatus && message.sending != FinalStatus
	if mayOvertake && n.reachedOrWakeAt(message.deadline) {
		return false
	}
	return message.call != 0
}

// sendMessages starts the calls to the API server that are due. At most maxConcurrentCalls about pods are in progress at a time.
// Final statuses go before readiness, and first tries before retries.
func (n *Node) sendMessages() {
	n.sendNodeState()
	a := &n.api
	hasReturned := func(p *Pod) bool { return p.message.call == 0 }
	a.podsBeingSent = slices.DeleteFunc(a.podsBeingSent, hasReturned)
	free := maxConcurrentCalls
	for _, p := range a.podsBeingSent {
		isOverdue := n.reachedOrWakeAt(p.message.deadline)
		if !isOverdue { // a call that hangs must not block others
			free--
		}
	}
	finalStatuses := n.podsWithDueMessage(&a.finalStatuses, free, FinalStatus)
	for _, p := range append(finalStatuses, n.podsWithDueMessage(&a.readiness, free, NotReady, ReadyAgain)...) {
		if free > 0 && !n.mustAwaitCall(p) {
			free--
			n.sendMessage(p)
		}
	}
}

// podsWithDueMessage returns the pods of a queue whose messages are due: first tries, and then retries. After as many
// first tries as limit says it stops, and leaves the other pods out. It first removes the pods from the queue that want none of its messages any
// more.
func (n *Node) podsWithDueMessage(queue *[]*Pod, limit int, messages ...Message) []*Pod {
	isObsolete := func(p *Pod) bool { return !slices.Contains(messages, p.message.wanted) }
	*queue = slices.DeleteFunc(*queue, isObsolete)
	var firstTries, retries []*Pod
	for _, p := range *queue {
		if len(firstTries) >= limit {
			return firstTries
		}
		isDue := !n.mustAwaitCall(p) && n.reachedOrWakeAt(p.message.retryAt)
		switch {
		case isDue && p.message.tries == 0:
			firstTries = append(firstTries, p)
		case isDue:
			retries = append(retries, p)
		}
	}
	return append(firstTries, retries...)
}

// sendMessage starts the call that sends the wanted message about a pod.
func (n *Node) sendMessage(p *Pod) {
	message := &p.message
	message.sending = message.wanted
	message.tries++
	message.deadline = n.now.Add(callTimeout)
	if message.sending == NotReady {
		message.deadline = message.notReadyBy
		n.storeMayShowNotReady(p)
	}
	if !slices.Contains(n.api.podsBeingSent, p) { // it may be there with a call that has not returned by its deadline
		n.api.podsBeingSent = append(n.api.podsBeingSent, p)
	}
	message.call = n.startCall(Effect{Do: SendMessage, Pod: p, Message: message.sending, Until: message.deadline})
}

// storeMayShowNotReady stores that the API server may show the pod as NotReady, before the call that sends that: even a call that
// fails may have this effect, which must be undone if the pod is not killed.
func (n *Node) storeMayShowNotReady(p *Pod) {
	if !p.MayShowNotReady {
		p.MayShowNotReady = true
		n.markPodDirty(p)
		n.storeDirty()
	}
}

// apply handles the result of a call that sends a message about a pod. An error is ignored if the message is not wanted any more.
// After any other error the message is sent again after a pause, unless it is NotReady and the time for that is over: then the pod
// is killed without it.
func (m MessageAnswered) apply(n *Node) {
	p := n.pods.byKey[m.Key]
	isCurrent := p != nil && p.message.call == m.Call // not an earlier call, or one about an earlier pod with this key
	isWanted := isCurrent && p.message.wanted == p.message.sending
	n.api.noteAnswer(n, m.Err, isWanted)
	if !isCurrent {
		return
	}
	message := &p.message
	message.call = 0
	if isWanted && m.Err != nil {
		message.failure = m.Err.Error()
	}
	switch {
	case !isWanted: // another message is wanted by now, or none
	case m.Err == nil:
		n.messageAccepted(p, message.sending)
	case message.wanted == NotReady && !n.now.Before(message.notReadyBy):
		n.killWithoutNotReady(p)
	default:
		message.retryAt = n.now.Add(n.messageRetryPause(message.tries, m.RetryAfter))
	}
}

// messageRetryPause returns the pause after this many tries to send a message. suggested is the pause that the server asked for;
// 0: none.
func (n *Node) messageRetryPause(tries int, suggested time.Duration) time.Duration {
	isDraining := n.drain.shutdown != nil
	switch {
	case suggested > 0:
		return min(suggested, maxSuggestedPause)
	case isDraining:
		return retryPause(tries, maxRetryPause)
	default:
		return retryPause(tries, maxIdleRetryPause)
	}
}

// retryPause returns the pause after this many tries. It doubles with each try, from minRetryPause to longest.
func retryPause(tries int, longest time.Duration) time.Duration {
	doublings := min(max(tries-1, 0), 10) // 2^10 times minRetryPause exceeds any longest
	return min(minRetryPause<<doublings, longest)
}

// messageAccepted handles a message that the API server has accepted. After NotReady it kills the pod: the kill waited for
// that.
func (n *Node) messageAccepted(p *Pod, accepted Message) {
	switch accepted {
	case FinalStatus:
		p.StatusAccepted = true
	case NotReady:
		n.killAfterNotReady(p)
	case ReadyAgain:
		p.MayShowNotReady = false
	}
	n.markPodDirty(p)
	n.queueAPIMessage(p)
}

// noteAnswer records the result of a call to the API server. It logs the first error of an outage, unless its text is that of the
// last logged error. isWanted is false if what the call has sent is not wanted any more: the call was aborted, so its error is
// ignored.
func (a *api) noteAnswer(n *Node, err error, isWanted bool) {
	if err == nil {
		a.failure, a.acceptedAt, a.isUnresponsive = "", n.now, false
		return
	}
	if !isWanted {
		return
	}
	isFirstError := a.failure == ""
	a.failure = err.Error()
	if isFirstError && a.failure != a.loggedFailure {
		a.loggedFailure = a.failure
		n.emit(Effect{Do: LogError, Text: "Failed to update the API server, will retry: " + a.failure})
	}
}

// retryFinalStatuses makes all pending final statuses due, because a drain begins: it must not wait for a retry that is
// scheduled in up to 30 s.
func (a *api) retryFinalStatuses() {
	for _, p := range a.finalStatuses {
		p.message.retryAt = time.Time{}
	}
}

// failureOrTimeout returns why the API server has not accepted something: the last error, or else that its time was spent.
func failureOrTimeout(failure string) string { return cmp.Or(failure, "the time for it was spent") }

// apply drops the pending final status of a static pod that is about to start again, as if the API server had accepted it. The new
// run has the same UID, and the status would end it at the API server. Nothing changes if the pod may not start now, because all
// pods are refused or its kill is not over.
func (s StaticPodStarts) apply(n *Node) {
	p := n.pods.byKey[s.Key]
	if p == nil || !p.Static || p.StatusAccepted {
		return
	}
	mayStart := !n.Refuses() && !p.isTerminating()
	if !mayStart {
		return
	}
	if p.isKillGivenUp { // it counts as ended, so that the next shutdown gives the new run a grace period of its own
		p.Ended, p.lastCallAtEnd, p.isKillGivenUp = n.now, n.lastCall, false
	}
	p.StatusAccepted = true
	n.markPodDirty(p)
	n.queueAPIMessage(p) // its final status is wanted no more
}

// publish begins to publish that s is in progress (nil: no shutdown is), unless this is the wanted node state already. A
// call that publishes an older state is aborted. Without Options.Steps.Publish the state counts as accepted.
func (n *Node) publish(s *Shutdown) {
	a := &n.api
	if a.wantedState != nil && a.wantedState.shutdown == s {
		return
	}
	a.wantedState, a.isStateAccepted = &nodeStateToPublish{shutdown: s}, !n.Options.Steps.Publish
	a.publishTries, a.publishFailure, a.publishRetryAt, a.acceptedAt = 0, "", time.Time{}, time.Time{} // these were of the older state
	if a.publishCall != 0 {
		n.emit(Effect{Do: Abort, Call: a.publishCall})
	}
	n.sendNodeState()
}

// isPublished reports whether the API server has accepted the newest node state.
func (n *Node) isPublished() bool { return n.api.isStateAccepted }

// sendNodeState starts the call that publishes the node's state, if it is due. A call in progress with an older state has until its
// deadline to end, so that the older state does not overwrite the newer one. If it ends only later, [Published] has the newer
// state sent again.
func (n *Node) sendNodeState() {
	a := &n.api
	isInProgress := a.publishCall != 0
	switch {
	case a.wantedState == nil || a.isStateAccepted || !n.reachedOrWakeAt(a.publishRetryAt):
		return
	case isInProgress && a.sentState == a.wantedState: // its result decides whether another call is needed
		return
	case isInProgress && !n.reachedOrWakeAt(a.publishDeadline): // the call with the older state has time to end
		return
	}
	a.publishTries++
	a.sentState, a.publishDeadline = a.wantedState, n.now.Add(publishTimeout)
	a.publishCall = n.startCall(Effect{Do: Publish, Shutdown: a.wantedState.shutdown, Until: a.publishDeadline})
}

// apply handles the result of a call that publishes the node's state. After an error the state is sent again, after a pause. The
// wanted state is sent at once if the call had an older one, or if the call has ended only after a later call began: it may then
// have overwritten the newer state.
func (p Published) apply(n *Node) {
	a := &n.api
	isCurrent := p.Call == a.publishCall
	isWanted := isCurrent && a.sentState == a.wantedState
	a.noteAnswer(n, p.Err, isWanted)
	if !isCurrent {
		if p.Err == nil { // the older call may have overwritten the wanted state
			a.isStateAccepted = false
		}
		return
	}
	a.publishCall = 0
	switch {
	case a.sentState != a.wantedState: // publish the newer state before the kills of this step
		n.sendNodeState()
	case p.Err == nil:
		a.isStateAccepted = true
	default:
		a.publishFailure = p.Err.Error()
		a.publishRetryAt = n.now.Add(retryPause(a.publishTries, maxIdleRetryPause))
	}
}

// reportPendingStatuses adds to the report of s how many final statuses the API server has not accepted, and why. It names
// at most maxReasons reasons, each with one pod.
func (n *Node) reportPendingStatuses(s *Shutdown) {
	const maxReasons = 3
	pending := matching(n.pods.all, n.isStatusPending)
	var reasons, examples []string
	for _, p := range pending {
		reason := failureOrTimeout(p.message.failure)
		if len(reasons) < maxReasons && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
			examples = append(examples, fmt.Sprintf("%s/%s: %s", p.Namespace, p.Name, reason))
		}
	}
	if len(pending) > 0 {
		n.reportError(s, fmt.Sprintf("failed to flush the final statuses of %d pods: %s", len(pending), strings.Join(examples, "; ")))
	}
}

// PendingStatuses returns the number of final statuses that the API server has not accepted.
func (n *Node) PendingStatuses() int { return len(matching(n.pods.all, n.isStatusPending)) }

// finishFlush returns true once a stage, which began at stageBegan, need not wait for the pods' final statuses any more:
// all are accepted, or until has come, or the API server has accepted nothing for unresponsiveAfter. If it has accepted nothing
// in the whole stage, later stages do not wait for it at all.
//
// Terminating pods are awaited too. A pod that uses its whole grace period ends just after it, and its status must be sent before
// the next bucket is killed, which may have the pods of the network.
func (n *Node) finishFlush(pods []*Pod, stageBegan, until time.Time) (isOver bool) {
	a := &n.api
	mayGetStatus := func(p *Pod) bool { return n.Options.Steps.Statuses && p.isTerminating() }
	awaited := n.drain.nextAwaited(pods, func(p *Pod) bool { return n.isStatusPending(p) || mayGetStatus(p) })
	if a.isUnresponsive || awaited == nil || n.reachedOrWakeAt(until) {
		return true
	}
	if awaited.isTerminating() { // it has no final status yet
		return false
	}
	waitsForServerSince := times.Later(stageBegan, a.acceptedAt)
	if !n.reachedOrWakeAt(waitsForServerSince.Add(unresponsiveAfter)) {
		return false
	}
	a.isUnresponsive = !a.acceptedAt.After(stageBegan)
	return true
}
