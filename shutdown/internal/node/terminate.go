package node

import (
	"slices"
	"time"
)

// settleTimeout is how long TerminateAll waits at most until the log is read and the host has said whether the previous agent's
// shutdown is still pending.
const settleTimeout = 5 * time.Second

// terminateAllState is the state of TerminateAll, which runs once.
type terminateAllState struct {
	isRequested bool
	requestedAt time.Time
	wallTime    time.Time // requestedAt by the wall clock
	isStopped   bool      // the contexts of all its calls have ended
	shutdown    *Shutdown // the drain that it waits for, its own or that of a shutdown; nil: none yet
	isDone      bool      // the drain that it waited for is over, or it was stopped
}

// apply records the first call of TerminateAll. In the same step, advanceTerminateAll begins its drain if it can.
func (t TerminateAll) apply(n *Node) {
	if !n.terminateAll.isRequested {
		n.terminateAll = terminateAllState{isRequested: true, requestedAt: n.now, wallTime: t.WallTime}
	}
}

// apply records that TerminateAll must stop. In the same step, advanceTerminateAll stops it.
func (StopTerminateAll) apply(n *Node) { n.terminateAll.isStopped = true }

// advanceTerminateAll moves TerminateAll on, if it was called. TerminateAll waits for one drain:
//
//   - If a shutdown is draining, for that drain.
//   - If the previous agent's shutdown may still resume, first for up to settleTimeout until that is decided.
//   - Otherwise for a drain of its own, which it begins. It also begins one if the shutdown that it waited for was
//     cancelled, or was still draining when the context of Run ended.
func (n *Node) advanceTerminateAll() {
	a := &n.terminateAll
	if !a.isRequested || a.isDone {
		return
	}
	hasOwnDrain := a.shutdown != nil && a.shutdown.isTerminateAll
	isDrainOver := a.shutdown != nil && !a.shutdown.Ended.IsZero() && !a.shutdown.Cancelled
	mayPreviousResume := n.state == StateAwaitingHost || n.state == StateAwaitingLog
	awaitsDecision := mayPreviousResume && !hasOwnDrain
	switch {
	case a.isStopped:
		n.stopTerminateAll()
	case n.state == StateDraining && !n.runEnded:
		a.shutdown = n.shutdown
	case awaitsDecision && !n.reachedOrWakeAt(a.requestedAt.Add(settleTimeout)): // wait for it
	case n.isDrainingForTerminateAll(): // wait for the drain
	case isDrainOver:
		a.isDone = true
	default:
		n.beginTerminateAll()
	}
}

// beginTerminateAll begins a drain of TerminateAll's own.
func (n *Node) beginTerminateAll() {
	n.lastShutdownNumber++
	waited := n.now.Sub(n.terminateAll.requestedAt)
	s := &Shutdown{
		Number: n.lastShutdownNumber, Began: n.now, BeganWallTime: n.terminateAll.wallTime.Add(waited), Origin: "TerminateAll",
		SendsStatuses: n.Options.Steps.Statuses, isTerminateAll: true,
	}
	s.Timetable = n.preliminaryTable(s, n.now)
	n.addRunningPodsToReport(s)
	n.terminateAll.shutdown = s
	n.drain.begin(n, s)
}

// stopTerminateAll ends TerminateAll, because no call waits for it any more. If TerminateAll has begun a drain itself, that drain
// stops and is reported now, even if pods still run. The drain of a shutdown continues.
func (n *Node) stopTerminateAll() {
	n.terminateAll.isDone = true
	if n.isDrainingForTerminateAll() {
		n.drain.stop(n)
		n.reportNow(n.terminateAll.shutdown)
	}
}

// isDrainingForTerminateAll reports whether the drain in progress is one that TerminateAll has begun. It is false during the
// drain of a shutdown.
func (n *Node) isDrainingForTerminateAll() bool {
	s := n.drain.shutdown
	return s != nil && s.isTerminateAll && s == n.terminateAll.shutdown
}

// addRunningPodsToReport adds to the report of s, the newest drain, the pods that an earlier drain has signalled and that are still
// terminating. If TerminateAll has waited for an earlier drain, it waits for s from now on, and returns only the report of s. So
// that report also gets the pods of the earlier drain that have ended.
func (n *Node) addRunningPodsToReport(s *Shutdown) {
	isTerminateAllWaiting := !n.terminateAll.isDone
	for _, p := range n.pods.all {
		wasWaitedFor := isTerminateAllWaiting && p.isInReportOf(n.terminateAll.shutdown)
		if (p.isTerminating() || wasWaitedFor) && !p.isInReportOf(s) {
			n.addToReport(p, s)
			n.markPodDirty(p)
		}
	}
}

// addToReport adds a pod that an earlier shutdown has signalled to the report of s too: its StillRanIn gets the number of s. To
// keep StillRanIn short, numbers of shutdowns that will not be reported any more are dropped. The newest number stays, because
// LastReport returns the report of that shutdown until s ends.
func (n *Node) addToReport(p *Pod, s *Shutdown) {
	newest := p.newestShutdown()
	p.StillRanIn = slices.DeleteFunc(p.StillRanIn, func(number int) (isObsolete bool) {
		hasNumber := func(s *Shutdown) bool { return s != nil && s.Number == number }
		willBeReported := hasNumber(n.shutdown) || hasNumber(n.terminateAll.shutdown) || slices.ContainsFunc(n.queuedReports, hasNumber)
		return !willBeReported && number != newest
	})
	p.StillRanIn = append(p.StillRanIn, s.Number)
}

// TerminateAllDrain returns the drain that TerminateAll waits for, and whether TerminateAll is over. The drain is nil
// before it has begun, and stays nil if TerminateAll was stopped before that.
func (n *Node) TerminateAllDrain() (s *Shutdown, isOver bool) {
	return n.terminateAll.shutdown, n.terminateAll.isDone
}
