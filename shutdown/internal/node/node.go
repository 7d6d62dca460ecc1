package node

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// State is what is known of the shutdown of the node. Admission follows from it.
type State int

// The states.
const (
	StateNone      State = iota // nothing is known
	StateOpening                // the state folder is another agent's, or its log is being read
	StateUnsettled              // the log has a shutdown that may go on, and the host has not said
	StateDraining               // announced, and the lock is not released
	StateReleased               // the lock is released, and the host has not said that it stays
)

func (s State) String() string {
	return [...]string{"none", "opening", "unsettled", "draining", "released"}[s]
}

// Config is what a node is made with. It does not change.
type Config struct {
	// Schedule is ascending by priority. Empty: one bucket lasts as long as the longest grace period
	// of a pod.
	Schedule plan.Schedule
	// Options have the times beside the kills. Their Steps say which calls there are.
	Options plan.Options
	// Policies has the policy of each kind of shutdown; SetTerminal for those that it lacks.
	Policies map[source.Kind]Policy
}

// Node is all that an agent knows of the shutdown of its node. Only Step changes it.
type Node struct {
	Config

	state    State
	limit    time.Duration // how long the host waits, counted from its event; 0: not known, or no limit
	failures []string      // for the report of the next drain
	failure  string        // the newest Failed, which is not logged again before the next drain
	// hostSaid is what the host has said last of whether a shutdown is pending, and takenBack what Trigger
	// has taken back before the log was read: it may be about the shutdown of the log.
	hostSaid  Input
	takenBack []Event
	settleBy  time.Time // when the shutdown of the log is over, if the host says nothing; zero: never
	shutdown  *Shutdown // the newest; nil: none
	all       terminateAll
	isEnding  bool        // Run has ended
	reports   []*Shutdown // whose report is due
	number    int         // of the newest shutdown

	pods     pods
	retrying []*Pod // whose kill has failed
	lister   lister
	drain    drain
	api      api

	lastCall int
	began    time.Time // the first Step
	now      time.Time
	wake     time.Time
	effects  []Effect
	// afterStore has the effects that need the entries of the step in the log: syncs and kills.
	afterStore []Effect
	dirty      []any // the entities that have changed, in order
}

// New returns a node that knows nothing.
func New(c Config) *Node {
	return &Node{Config: c, pods: pods{byKey: map[Key]*Pod{}}}
}

// Step takes an input, and returns what is to be done, in this order.
func (n *Node) Step(at time.Time, in Input) []Effect {
	if n.began.IsZero() {
		n.began = at
	}
	n.now, n.wake = at, time.Time{}
	in.apply(n)
	n.settle()
	for n.advance() {
		n.settle()
	}
	n.retryKills()
	n.tell()
	n.report()
	n.store()
	effects := append(n.effects, n.afterStore...)
	n.effects, n.afterStore = nil, nil
	return effects
}

// Wake returns when Step is due with a [Tick]; zero: only when something happens.
func (n *Node) Wake() time.Time { return n.wake }

// passed reports whether a moment has come. If it has not, Step is due then.
func (n *Node) passed(t time.Time) bool {
	if !n.now.Before(t) {
		return true
	}
	n.wake = times.Earlier(n.wake, t)
	return false
}

// changed has an entity stored at the end of the step, before its syncs and kills.
func (n *Node) changed(entity any) {
	switch e := entity.(type) {
	case *Shutdown:
		if e.local || e.isDirty {
			return
		}
		e.isDirty = true
	case *Pod:
		if e.isDirty {
			return
		}
		e.isDirty = true
	}
	n.dirty = append(n.dirty, entity)
}

// store has what has changed appended to the log.
func (n *Node) store() {
	if len(n.dirty) == 0 {
		return
	}
	e := Effect{Do: Store}
	for _, entity := range n.dirty {
		switch changed := entity.(type) {
		case *Shutdown:
			changed.isDirty = false
			e.Shutdown = changed
		case *Pod:
			changed.isDirty = false
			e.Pods = append(e.Pods, changed)
		}
	}
	n.dirty = n.dirty[:0]
	n.do(e)
}

// newLog has a log begun with all that is known.
func (n *Node) newLog() {
	for _, entity := range n.dirty {
		switch e := entity.(type) {
		case *Shutdown:
			e.isDirty = false
		case *Pod:
			e.isDirty = false
		}
	}
	n.dirty = n.dirty[:0]
	e := Effect{Do: NewLog, Shutdown: n.shutdown}
	for _, p := range n.pods.all {
		if p.isSignalled() || p.Marked || p.Meant {
			e.Pods = append(e.Pods, p)
		}
	}
	n.do(e)
}

// set sets the state.
func (n *Node) set(s State) {
	n.state = s
	for _, p := range n.pods.all {
		n.wish(p) // a mark is taken back outside of a shutdown
	}
}

// State returns the state.
func (n *Node) State() State { return n.state }

// Shutdown returns the newest shutdown; nil: there was none.
func (n *Node) Shutdown() *Shutdown { return n.shutdown }

// Refuses reports whether no pod may start.
func (n *Node) Refuses() bool {
	return n.all.asked || n.state == StateUnsettled || n.state == StateDraining || n.state == StateReleased
}

// Refused returns the pods that may not start even if others may: they were signalled, and have not
// ended, or their final status is pending or under way.
func (n *Node) Refused() (refused []*Pod) {
	for _, p := range n.pods.all {
		if p.isSignalled() && (p.Ended.IsZero() && (!p.Static || !p.isGivenUp) || n.isPending(p)) || n.isTellingEnd(p) {
			refused = append(refused, p)
		}
	}
	return refused
}
