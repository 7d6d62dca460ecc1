package node

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Input says what has happened. All inputs are the types below.
type Input interface{ apply(n *Node) }

type (
	// Event is an event of the host, or of Trigger.
	Event struct {
		source.Event
		Host bool
		Wall time.Time // the moment of the input by the wall clock
	}
	// Pending is the host's answer to the question whether a shutdown is pending. Known is false if
	// the host cannot tell.
	Pending struct {
		Event *source.Event // nil: none is
		Known bool
		Wall  time.Time
	}
	// Unreached says that the host was not reached within 5 s. Adopted says that the lock of a
	// previous agent was adopted, so that the host waits.
	Unreached struct{ Adopted bool }
	// Limit says how long the host waits, counted from its event; negative: not at all. Zero is no
	// limit.
	Limit time.Duration
	// Opening says that another agent has the state folder, or that the log is still being read.
	Opening struct{}
	// Read has the entries of the state log. SameBoot reports whether an agent of this boot has
	// written it. Without entries nothing could be read.
	Read struct {
		Entries  []any // each a Shutdown or a Pod
		SameBoot bool
	}
	// Listed is the answer of a List effect. Each pod has what a list tells of it: its identity,
	// priority and Object, and what follows from that.
	Listed struct {
		Call int
		Pods []Pod
		Err  error
	}
	// Killed is the answer of a Kill effect. NoRetry says that another call would fail as well.
	Killed struct {
		Call    int
		Key     Key
		Outcome string
		Status  *v1.PodStatus
		Err     error
		NoRetry bool
	}
	// Told is the answer of a Tell effect. RetryAfter is the pause that the server asks for; 0: none.
	Told struct {
		Call       int
		Key        Key
		Err        error
		RetryAfter time.Duration
	}
	// Published is the answer of a Publish effect.
	Published struct {
		Call int
		Err  error
	}
	// Answered is the answer of another call: Prepare, Hold, Unmount, Sync or OnRelease.
	Answered struct {
		Call int
		Err  error
	}
	// Failed says that something has failed that a report has to name: the log, or the lock.
	Failed struct{ Text string }
	// NotHeld says that no lock was held when the drain began, and none was adopted.
	NotHeld struct{}
	// Start says that a static pod is about to be started again: its final status is not sent any
	// more.
	Start struct{ Key Key }
	// TerminateAll drains the node without a shutdown, and refuses all pods from now on.
	TerminateAll struct{ Wall time.Time }
	// StopTerminateAll stops the drain of TerminateAll: its context has ended.
	StopTerminateAll struct{}
	// RunEnds says that the context of Run has ended.
	RunEnds struct{}
	// Tick says that the time of Wake has come.
	Tick struct{}
)

func (Tick) apply(*Node) {}

func (Opening) apply(n *Node) {
	if n.state == StateNone {
		n.set(StateOpening)
	}
}

// apply adds a failure to the report of the drain, of the one that is just over, or of the next one.
func (f Failed) apply(n *Node) {
	if f.Text != n.failure {
		n.do(Effect{Do: LogError, Text: f.Text})
		n.failure = f.Text
	}
	switch {
	case n.drain.of != nil:
		n.reported(n.drain.of, f.Text)
	case n.state == StateReleased:
		n.reported(n.shutdown, f.Text)
	case !slices.Contains(n.failures, f.Text):
		n.failures = append(n.failures, f.Text)
	}
}

func (NotHeld) apply(n *Node) {
	if s := n.drain.of; s != nil && !s.local && slices.ContainsFunc(s.Announced, Announcement.isOfHost) {
		n.fail(s, "no inhibitor lock is held: the host may go on before the pods have ended")
	}
}

func (a Answered) apply(n *Node) {
	if d := &n.drain; d.call == a.Call {
		d.isAnswered, d.err = true, a.Err
	}
}
