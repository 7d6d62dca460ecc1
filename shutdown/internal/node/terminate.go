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
	stopped     bool      // its context has ended
	shutdown    *Shutdown // the drain that it waits for, its own or that of a shutdown; nil: none yet
	isDone      bool
}

func (a *terminateAllState) isOver() bool { return a.isDone }

func (t TerminateAll) apply(n *Node) {
	if !n.terminateAll.requested {
		n.terminateAll = terminateAllState{requested: true, requestedAt: n.now, wall: t.Wall}
	}
}

// apply stops TerminateAll: its drain signals no further pod.
func (StopTerminateAll) apply(n *Node) { n.terminateAll.stopped = true }

// advanceTerminateAll waits for the drain of a shutdown in progress. If there is none, or it was
// cancelled, or ended with Run, it drains the node itself.
func (n *Node) advanceTerminateAll() {
	a := &n.terminateAll
	if !a.requested || a.isDone {
		return
	}
	own := a.shutdown != nil && a.shutdown.local
	switch {
	case a.stopped:
		n.stopTerminateAll()
	case n.state == StateDraining && !n.runEnded:
		a.shutdown = n.shutdown
	case (n.state == StateUnsettled || n.state == StateOpening) && !n.reached(a.requestedAt.Add(settleTimeout)) && !own:
	case own && n.drain.shutdown == a.shutdown:
	case a.shutdown != nil && !a.shutdown.Ended.IsZero() && !a.shutdown.Cancelled:
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

// stopTerminateAll ends TerminateAll and reports the pods that still run.
func (n *Node) stopTerminateAll() {
	a := &n.terminateAll
	a.isDone = true
	if s := a.shutdown; s != nil && s.local && n.drain.shutdown == s {
		n.drain.stop(n)
		n.reportNow(s)
	}
}

// addRunningPods adds to s the pods that are still terminating, and those of the drain that
// TerminateAll waits for, which s continues.
func (n *Node) addRunningPods(s *Shutdown) {
	var before *Shutdown
	if !n.terminateAll.isDone {
		before = n.terminateAll.shutdown
	}
	for _, p := range n.pods.all {
		if (p.isTerminating() || p.belongsTo(before)) && !p.belongsTo(s) {
			n.addToShutdown(p, s)
			n.markDirty(p)
		}
	}
}

// addToShutdown adds a pod of an earlier shutdown to s. It drops the numbers of shutdowns that will not
// be reported again.
func (n *Node) addToShutdown(p *Pod, s *Shutdown) {
	p.Joined = slices.DeleteFunc(p.Joined, func(number int) bool {
		isReported := func(of *Shutdown) bool { return of != nil && of.Number == number }
		return !isReported(n.shutdown) && !isReported(n.terminateAll.shutdown) && !slices.ContainsFunc(n.reports, isReported)
	})
	p.Joined = append(p.Joined, s.Number)
}

// Terminated returns the drain that TerminateAll waited for, and whether TerminateAll is over. The
// drain is nil if TerminateAll was stopped before it began.
func (n *Node) Terminated() (s *Shutdown, isOver bool) {
	return n.terminateAll.shutdown, n.terminateAll.isDone
}
