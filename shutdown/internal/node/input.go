package node

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Input says what happened. The types below are all the inputs.
type Input interface{ apply(n *Node) }

type (
	// Event is a shutdown event of the host, or of Trigger.
	Event struct {
		source.Event
		Host     bool      // from the host, not from Trigger
		WallTime time.Time // when the event was received, by the wall clock
	}
	// HostAnswered is the host's answer whether a shutdown is pending. Known is false if the host cannot
	// answer. WallTime is when the answer was received, by the wall clock.
	HostAnswered struct {
		Event    *source.Event // nil: none is pending
		Known    bool
		WallTime time.Time
	}
	// HostUnreached says that the host could not be reached within 5 s of the start of Run. Adopted says that
	// the agent holds the lock of the previous agent, so that the host waits for this agent.
	HostUnreached struct{ Adopted bool }
	// HostLimit is how long the host waits after it has announced a shutdown; 0: no limit; negative: it does not wait.
	HostLimit time.Duration
	// Policies has the policy of each kind of shutdown; SetTerminal for a kind that is missing. Errors says what is wrong
	// with the policy of a kind: each drain of that kind reports it.
	Policies struct {
		Of     map[source.Kind]Policy
		Errors map[source.Kind]string
	}
	// LogOpening says that another agent owns the state folder, or that the log is still being read.
	LogOpening struct{}
	// LogRead has the entries of the state log; none if the log could not be read. SameBoot says that an
	// agent of this boot wrote it. Otherwise its pods have ended, and its times are another boot's.
	//
	// Before LogRead the shell ignores Store and NewLog: if it replaced the old log and the agent then died, the final
	// statuses that are pending in the old log would be lost. The effects of LogRead store all that the Node knows.
	LogRead struct {
		Entries  Entries
		SameBoot bool
	}
	// Listed is the result of a List effect. Each pod has its identity, its priority, Object, and the fields that are
	// derived from Object.
	Listed struct {
		Call int
		Pods []Pod
		Err  error
	}
	// Killed is the result of a Kill effect. Without Err the pod has ended. NoRetry says that a retry would
	// fail as well.
	Killed struct {
		Call    int
		Key     Key
		Outcome string
		Status  *v1.PodStatus
		Err     error
		NoRetry bool
	}
	// MessageAnswered is the result of a SendMessage effect, which sends a message about the pod with this Key to the API
	// server: its final status, that it is not ready, or that it is ready again. RetryAfter is the pause that the server
	// asked for; 0: none.
	MessageAnswered struct {
		Call       int
		Key        Key
		Err        error
		RetryAfter time.Duration
	}
	// Published is the result of a Publish effect.
	Published struct {
		Call int
		Err  error
	}
	// CallReturned is the result of Prepare, Hold, Unmount, Sync or OnRelease.
	CallReturned struct {
		Call int
		Err  error
	}
	// Failed is a failure that no other input reports, such as one of the log or the lock. It is logged, and a
	// report names it.
	Failed struct{ Text string }
	// LockNotHeld says that no lock was held or adopted when the drain began, so that the host does not wait.
	LockNotHeld struct{}
	// StaticPodStarts says that a static pod is about to start again. The final status of its previous run must not be sent
	// any more: it would be taken for the status of the new run, which has the same UID.
	StaticPodStarts struct{ Key Key }
	// TerminateAll drains the node without a shutdown. From then on all pods are refused.
	TerminateAll struct{ WallTime time.Time }
	// StopTerminateAll stops the drain of TerminateAll, because its context has ended.
	StopTerminateAll struct{}
	// RunEnds says that the context of Run has ended.
	RunEnds struct{}
	// Tick says that the time of Wake has come.
	Tick struct{}
)

// apply does nothing: after each input, Step advances whatever has waited for the current time.
func (Tick) apply(*Node) {}

// apply sets the policies for the pods that are killed from now on.
func (p Policies) apply(n *Node) { n.policies = p }

// apply enters StateAwaitingLog, unless a shutdown has begun already.
func (LogOpening) apply(n *Node) {
	n.awaitsLog = true
	if n.state == StateNone {
		n.setState(StateAwaitingLog)
	}
}

// apply logs the failure, unless it is a repeated one, and adds it to a report: to that of the drain in progress, or else to that of
// the shutdown whose lock is released, or else to that of the next drain.
func (f Failed) apply(n *Node) {
	draining := n.drain.shutdown // nil: no drain is in progress
	isInReport := draining != nil && slices.Contains(draining.Errors, f.Text)
	if f.Text != n.loggedFailure && !isInReport {
		n.emit(Effect{Do: LogError, Text: f.Text})
		n.loggedFailure = f.Text
	}
	switch {
	case draining != nil:
		n.addError(draining, f.Text)
	case n.state == StateReleased:
		n.addError(n.shutdown, f.Text)
	case !slices.Contains(n.failuresOutsideDrains, f.Text):
		n.failuresOutsideDrains = append(n.failuresOutsideDrains, f.Text)
	}
}

// apply adds to the report that no lock is held, if the host has announced the shutdown: only then is it expected to wait.
func (LockNotHeld) apply(n *Node) {
	s := n.drain.shutdown
	if s == nil || s.isTerminateAll { // TerminateAll needs no lock
		return
	}
	if slices.ContainsFunc(s.Announced, Announcement.isOfHost) {
		n.reportError(s, "no inhibitor lock is held: the host may go on before the pods have ended")
	}
}

// apply records the result of the call that the drain's current stage waits for. It ignores the results of other calls.
func (a CallReturned) apply(n *Node) {
	if d := &n.drain; d.call == a.Call {
		d.hasCallReturned, d.callErr = true, a.Err
	}
}
