package node

import (
	"slices"
	"time"
)

// settleTimeout bounds how long TerminateAll waits for the log, and for the host to say whether the
// shutdown of the log is still pending.
const settleTimeout = 5 * time.Second

// terminateAllState is the state of TerminateAll, which runs once.
type terminateAllState struct {
	requested   bool
	requestedAt time.Time
	wall        time.Time
	stopped     bool      // the contexts of all its calls have ended
	shutdown    *Shutdown // the drain that it waits for, its own or that of a shutdown; nil: none yet
	isDone      bool      // it has finished: the drain that it waited for is over, or it was stopped
}

// apply records the first call of TerminateAll. advanceTerminateAll then begins its drain, in the same step
// if it can.
func (t TerminateAll) apply(n *Node) {
	if !n.terminateAll.requested {
		n.terminateAll = terminateAllState{requested: true, requestedAt: n.now, wall: t.Wall}
	}
}

// apply stops TerminateAll: its drain signals no further pod.
func (StopTerminateAll) apply(n *Node) { n.terminateAll.stopped = true }

// advanceTerminateAll moves TerminateAll on, if it was called. It leaves the drain to a shutdown that is in
// progress, and waits for it. If there is none, or it was cancelled or ended with Run, it begins a drain of
// its own. While the shutdown of the log may still resume, it waits for that first, but at most settleTimeout.
func (n *Node) advanceTerminateAll() {
	a := &n.terminateAll
	if !a.requested || a.isDone {
		return
	}
	hasOwnDrain := a.shutdown != nil && a.shutdown.local // otherwise it waits for the drain of a shutdown, or for none
	mayShutdownResume := n.state == StateUnsettled || n.state == StateOpening
	switch {
	case a.stopped:
		n.stopTerminateAll()
	case n.state == StateDraining && !n.runEnded:
		a.shutdown = n.shutdown
	case mayShutdownResume && !n.reachedOrWakeAt(a.requestedAt.Add(settleTimeout)) && !hasOwnDrain: // wait for that
	case hasOwnDrain && n.drain.shutdown == a.shutdown: // it is in progress
	case a.shutdown != nil && !a.shutdown.Ended.IsZero() && !a.shutdown.Cancelled: // the drain is over
		a.isDone = true
	default:
		n.lastNumber++
		s := &Shutdown{Number: n.lastNumber, Began: n.now, Wall: a.wall, Origin: "TerminateAll", Policy: n.policy(Announcement{}), Statuses: n.Options.Steps.Statuses, local: true}
		s.setTable(n.newTable(s, n.now))
		n.addRunningPods(s)
		a.shutdown = s
		n.drain.begin(n, s)
	}
}

// stopTerminateAll ends TerminateAll. If it has a drain of its own, that stops and is reported now, although
// pods may still run.
func (n *Node) stopTerminateAll() {
	a := &n.terminateAll
	a.isDone = true
	if s := a.shutdown; s != nil && s.local && n.drain.shutdown == s {
		n.drain.stop(n)
		n.reportNow(s)
	}
}

// addRunningPods adds the pods that are still terminating to the report of s. If s takes over the drain that
// TerminateAll waits for, it adds all pods of that drain: TerminateAll returns the report of s.
func (n *Node) addRunningPods(s *Shutdown) {
	var before *Shutdown // the drain that s takes over; nil: none
	if !n.terminateAll.isDone {
		before = n.terminateAll.shutdown
	}
	for _, p := range n.pods.all {
		if (p.isTerminating() || p.belongsTo(before)) && !p.belongsTo(s) {
			n.addToShutdown(p, s)
			n.markPodDirty(p)
		}
	}
}

// addToShutdown adds p, which an earlier shutdown has signalled, to the report of s too: it appends the number of s
// to p.Joined. It drops the numbers of shutdowns that will not be reported any more, so that p.Joined stays short.
func (n *Node) addToShutdown(p *Pod, s *Shutdown) {
	p.Joined = slices.DeleteFunc(p.Joined, func(number int) bool {
		hasNumber := func(of *Shutdown) bool { return of != nil && of.Number == number }
		isNeeded := hasNumber(n.shutdown) || hasNumber(n.terminateAll.shutdown) || slices.ContainsFunc(n.reports, hasNumber)
		return !isNeeded
	})
	p.Joined = append(p.Joined, s.Number)
}

// Terminated returns the drain that TerminateAll waits for, and whether TerminateAll is over. The drain is nil
// before it has begun, and stays nil if TerminateAll was stopped before that.
func (n *Node) Terminated() (s *Shutdown, isOver bool) {
	return n.terminateAll.shutdown, n.terminateAll.isDone
}
