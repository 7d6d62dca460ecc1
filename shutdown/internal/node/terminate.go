package node

import (
	"slices"
	"time"
)

// settleTime is how long TerminateAll waits for the host to say whether the shutdown of the log goes
// on, and for the log.
const settleTime = 5 * time.Second

// terminateAll is the state of TerminateAll, which is asked for once.
type terminateAll struct {
	asked    bool
	at       time.Time
	wall     time.Time
	stopped  bool      // its context has ended
	shutdown *Shutdown // the drain that it waits for: its own, or that of a shutdown; nil: none yet
	isDone   bool
}

// isOver reports whether TerminateAll has drained the node.
func (a *terminateAll) isOver() bool { return a.isDone }

// apply asks for the drain of the node.
func (t TerminateAll) apply(n *Node) {
	if !n.all.asked {
		n.all = terminateAll{asked: true, at: n.now, wall: t.Wall}
	}
}

// apply stops TerminateAll: no further pod is signalled by its drain.
func (StopTerminateAll) apply(n *Node) { n.all.stopped = true }

// terminate goes on with TerminateAll: it waits for the drain of a shutdown that is under way, and drains
// the node itself where none is, also after one that was cancelled or has ended with Run.
func (n *Node) terminate() {
	a := &n.all
	if !a.asked || a.isDone {
		return
	}
	own := a.shutdown != nil && a.shutdown.local
	switch {
	case a.stopped:
		n.stopTerminateAll()
	case n.state == StateDraining && !n.isEnding:
		a.shutdown = n.shutdown
	case (n.state == StateUnsettled || n.state == StateOpening) && !n.passed(a.at.Add(settleTime)) && !own:
	case own && n.drain.of == a.shutdown:
	case a.shutdown != nil && !a.shutdown.Ended.IsZero() && !a.shutdown.Cancelled:
		a.isDone = true
	default:
		n.number++
		s := &Shutdown{Number: n.number, Began: n.now, Wall: a.wall, Origin: "TerminateAll", Policy: n.policy(Announcement{}), Statuses: n.Options.Steps.Statuses, local: true}
		s.setTable(n.newTable(s, n.now))
		n.joinRunning(s)
		a.shutdown = s
		n.drain.begin(n, s)
	}
}

// stopTerminateAll ends TerminateAll with who is left.
func (n *Node) stopTerminateAll() {
	a := &n.all
	a.isDone = true
	if s := a.shutdown; s != nil && s.local && n.drain.of == s {
		n.drain.stop(n)
		n.reportNow(s)
	}
}

// joinRunning makes the pods that still run those of a shutdown too, and those of the drain that
// TerminateAll waits for, which the shutdown takes over or carries on.
func (n *Node) joinRunning(s *Shutdown) {
	var before *Shutdown
	if !n.all.isDone {
		before = n.all.shutdown
	}
	for _, p := range n.pods.all {
		if (p.runs() || p.isOf(before)) && !p.isOf(s) {
			n.join(p, s)
			n.changed(p)
		}
	}
}

// join makes a pod one of a further shutdown. Of others only those count that may be reported.
func (n *Node) join(p *Pod, s *Shutdown) {
	p.Joined = slices.DeleteFunc(p.Joined, func(number int) bool {
		isReported := func(of *Shutdown) bool { return of != nil && of.Number == number }
		return !isReported(n.shutdown) && !isReported(n.all.shutdown) && !slices.ContainsFunc(n.reports, isReported)
	})
	p.Joined = append(p.Joined, s.Number)
}

// Terminated returns the drain that TerminateAll has waited for, once it is over; nil: it is not. One
// that was stopped may have none.
func (n *Node) Terminated() (s *Shutdown, isOver bool) { return n.all.shutdown, n.all.isDone }
