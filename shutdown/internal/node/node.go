package node

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// State is the state of the node's shutdown. It determines which pods may start.
type State int

// The states of the shutdown. The log is the state log, which tells the next agent of the shutdown; it is in the state folder.
const (
	StateNone         State = iota // no shutdown is in progress
	StateAwaitingLog               // the log is not read yet; another agent may still own the state folder
	StateAwaitingHost              // the log has an unfinished shutdown, and the host has not said whether it is still pending
	StateDraining                  // a shutdown is announced, and the lock is not released
	StateReleased                  // the lock is released, and the shutdown is not cancelled
)

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"none", "awaiting log", "awaiting host", "draining", "released"}[s]
}

// Config configures a Node.
type Config struct {
	// Schedule is ascending by priority. Empty: one bucket, as long as the longest grace period of any
	// pod.
	Schedule plan.Schedule
	// Options has the time of each step other than the kills. Options.Steps says which steps there are.
	Options plan.Options
}

// Node is the state machine of one agent. Only Step changes it.
type Node struct {
	Config

	policies              Policies
	state                 State
	hostLimit             time.Duration // how long the host waits after its announcement; 0: not known, or no limit
	failuresOutsideDrains []string      // failures outside a drain, for the report of the next drain
	loggedFailure         string        // the text of the newest Failed: the same text is not logged again before the next drain
	awaitsLog             bool          // the input LogOpening has come, and LogRead has not
	// newestHostInput is the newest HostAnswered, HostUnreached or cancellation by the host; nil: none yet. If the log has an
	// unfinished shutdown, awaitHost applies it again when the log is read, because it may be about that shutdown.
	newestHostInput    Input
	cancelsBeforeLog   []Event   // cancellations by Trigger that came before the log was read; awaitHost applies them again too
	awaitHostUntil     time.Time // when StateAwaitingHost ends even if the host has not answered; zero: never
	shutdown           *Shutdown // the newest; nil: none
	terminateAll       terminateAllState
	runEnded           bool        // the context of Run has ended
	queuedReports      []*Shutdown // the shutdowns whose reports will be made once their pods have ended
	lastShutdownNumber int         // the number of the newest shutdown

	pods         pods
	killsToRetry []*Pod // pods whose kill failed and is retried after a pause
	lister       lister
	drain        drain
	api          api

	lastCall  int       // the number of the newest call
	startedAt time.Time // the time of the first Step
	now       time.Time // the time of the current Step
	wake      time.Time // the result of Wake
	effects   []Effect  // of the current Step
	// afterStore has the Sync and Kill effects of the current Step. They follow its Store effect, so that a kill
	// is in the log before it begins.
	afterStore []Effect
	dirty      Entries // what has changed since the last Store effect
}

// New returns a Node in StateNone.
func New(c Config) *Node {
	return &Node{Config: c, pods: pods{byKey: map[Key]*Pod{}}}
}

// Step handles an input that arrives at the time at. It returns the effects to carry out, in order.
func (n *Node) Step(at time.Time, in Input) []Effect {
	if n.startedAt.IsZero() {
		n.startedAt = at
	}
	n.now, n.wake = at, time.Time{}
	in.apply(n)
	n.updateState()
	for n.advanceDrain() {
		n.updateState()
	}
	n.retryKills()
	n.sendMessages()
	n.makeReports()
	n.storeDirty()
	effects := append(n.effects, n.afterStore...)
	n.effects, n.afterStore = nil, nil
	return effects
}

// Wake returns the time at which Step is due with a [Tick]; zero: not before the next input.
func (n *Node) Wake() time.Time { return n.wake }

// reachedOrWakeAt reports whether t has come. If not, Wake returns t or an earlier time, so that a Tick repeats the
// check at t.
func (n *Node) reachedOrWakeAt(t time.Time) bool {
	if !n.now.Before(t) {
		return true
	}
	n.wake = times.Earlier(n.wake, t)
	return false
}

// markDirty makes this step append s, which has changed, to the state log. A drain of TerminateAll is not stored: the node
// stays up, so the next agent must not resume it.
func (n *Node) markDirty(s *Shutdown) {
	if !s.isTerminateAll {
		n.dirty.Shutdown = s
	}
}

// markPodDirty makes this step append p, which has changed, to the state log.
func (n *Node) markPodDirty(p *Pod) {
	if !p.isDirty {
		p.isDirty = true
		n.dirty.Pods = append(n.dirty.Pods, p)
	}
}

// takeDirty returns what has changed since the last call of takeDirty.
func (n *Node) takeDirty() Entries {
	changed := n.dirty
	n.dirty = Entries{}
	for _, p := range changed.Pods {
		p.isDirty = false
	}
	return changed
}

// storeDirty appends what has changed to the state log.
func (n *Node) storeDirty() {
	if changed := n.takeDirty(); changed.Shutdown != nil || len(changed.Pods) > 0 {
		n.emit(Effect{Do: Store, Shutdown: changed.Shutdown, Pods: changed.Pods})
	}
}

// replaceLog replaces the state log by a new one with the newest shutdown and the pods that the next agent needs.
func (n *Node) replaceLog() {
	n.takeDirty() // the new log has these changes already
	n.emit(Effect{Do: NewLog, Shutdown: n.shutdown, Pods: matching(n.pods.all, (*Pod).isNeededByNextAgent)})
}

// setState sets the state. It queues a message about each pod that the new state requires: outside a shutdown, pods that were set
// NotReady become Ready again.
func (n *Node) setState(s State) {
	n.state = s
	for _, p := range n.pods.all {
		n.queueAPIMessage(p)
	}
}

// State returns the state.
func (n *Node) State() State { return n.state }

// Shutdown returns the newest shutdown; nil: there was none.
func (n *Node) Shutdown() *Shutdown { return n.shutdown }

// Refuses reports whether no pod may start.
func (n *Node) Refuses() bool {
	switch n.state {
	case StateAwaitingHost, StateDraining, StateReleased:
		return true
	default:
		return n.terminateAll.isRequested
	}
}

// Refused returns the pods that may not start even while the node admits others. Their previous run is not over: it was
// signalled and has not ended, or its final status is pending or being sent, which would end the new run at the API server. The
// input [StaticPodStarts] can end the refusal of a static pod.
func (n *Node) Refused() []*Pod {
	return matching(n.pods.all, func(p *Pod) bool {
		isStillEnding := p.isSignalled() && !p.hasEnded()
		return isStillEnding || n.isStatusPending(p) || n.isSendingFinalStatus(p)
	})
}
