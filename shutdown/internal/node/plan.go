package node

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	// firstListTimeout bounds the wait for the first list if no schedule is configured: the list then
	// decides how long the drain takes.
	firstListTimeout = 30 * time.Second
	// listWarmUp is how long after the first Step an empty list is not trusted: the informer behind it may not have its pods
	// yet.
	listWarmUp = time.Second
)

// planWhenListed waits for the first list of the pods and then makes the plan (finishPlan). If no list comes in time, every bucket
// counts as having pods. If the list is empty and the stage began during the warm-up, the first listWarmUp of the agent, it waits
// until the warm-up is over and has the pods listed once more.
func (d *drain) planWhenListed(n *Node) (moved bool) {
	listTimeout := answerTimeout
	if len(n.Schedule) == 0 { // the pods decide how long the drain takes
		listTimeout = firstListTimeout
	}
	if !d.awaitNewList(n, times.Earlier(d.stageBegan.Add(listTimeout), d.shutdown.WaitEnd())) {
		return false
	}
	hasList, warmUpEnd := d.hasNewList(n), n.startedAt.Add(listWarmUp)
	isFirstListEmpty := hasList && !d.wasFirstListEmpty && n.lister.isNewestEmpty
	if wasWarmingUp := d.stageBegan.Before(warmUpEnd); isFirstListEmpty && wasWarmingUp {
		if !n.reachedOrWakeAt(warmUpEnd) {
			return false
		}
		d.wasFirstListEmpty = true
		return d.enterStage(n, planning) // again, which requests another list
	}
	if !hasList {
		n.lister.reportTimeout(n)
	}
	d.finishPlan(n, hasList)
	return d.enterStage(n, holding)
}

// finishPlan makes the final timetable, stores it with the pods to kill, and passes both to OnPlan. arePodsKnown is false if no
// list has come in time.
func (d *drain) finishPlan(n *Node, arePodsKnown bool) {
	s := d.shutdown
	if !s.HasFinalTable { // the previous agent may have made it
		s.HasFinalTable = true
		d.makeFinalTable(n, arePodsKnown)
	}
	s.IsPrepareOver = true    // the timetable has no time for Prepare any more
	s.hasCalledPrepare = true // this agent does not call Prepare again; the next one does
	n.markDirty(s)
	for _, p := range n.PodsToKill() { // the log tells the next agent which pods to kill
		if !p.KillPlanned && !p.isSignalled() {
			p.KillPlanned = true
			n.markPodDirty(p)
		}
	}
	if !s.isTerminateAll {
		n.startCallAfterStore(Effect{Do: Sync})
		n.emit(Effect{Do: KeepLock, Until: s.releaseBy()})
	}
	n.startCall(Effect{Do: OnPlan, Shutdown: s, Pods: n.PodsToKill()})
}

// makeFinalTable replaces the preliminary timetable by the final one. If the host leaves too little time for all buckets, those
// without pods give their time to the others. If arePodsKnown is false, all count as having pods.
func (d *drain) makeFinalTable(n *Node, arePodsKnown bool) {
	s := d.shutdown
	r := n.tableRequest(s, s.Timetable.Received, s.HostEnd)
	if arePodsKnown {
		r.Occupied = n.occupied(r.Schedule, d.bucket)
	}
	if len(n.Schedule) == 0 { // the drain counts from now, so that a slow list does not shorten the pods' grace periods
		if limit := n.Options.Limit; limit != 0 { // 0: no limit; negative: no time
			r.HostEnd = times.Earlier(r.HostEnd, r.Received.Add(max(limit, 0))) // the limit counts from the announcement
		}
		r.Received = times.Earlier(n.now, s.WaitEnd()) // not from a timer that fires late: the lock must be released in time
	}
	s.Timetable = timetable.New(r)
}

// PodsToKill returns the pods that a drain has to kill, including those that are signalled but have not ended.
func (n *Node) PodsToKill() []*Pod { return matching(n.pods.all, n.mustBeKilled) }

// occupied returns, for each bucket of the schedule, whether it has pods to kill. The first doneBuckets are over: their remaining
// pods count for the next bucket, which kills them, or for the last bucket if all are over.
func (n *Node) occupied(schedule plan.Schedule, doneBuckets int) []bool {
	hasPods := make([]bool, len(schedule))
	for _, p := range n.PodsToKill() {
		bucket := max(schedule.Index(p.Priority), doneBuckets)
		hasPods[min(bucket, len(schedule)-1)] = true
	}
	return hasPods
}

// shortenTable adapts the timetable of the drain if the host now shuts down (HostEnd) before the timetable ends. The final
// timetable is shortened so that no time moves later. A preliminary one is replaced. A drain of TerminateAll ignores the host's
// deadline.
func (d *drain) shortenTable(n *Node) {
	s := d.shutdown
	if s == nil || s.isTerminateAll {
		return
	}
	if hostEndsEarlier := !s.HostEnd.IsZero() && s.HostEnd.Before(s.Timetable.End()); !hostEndsEarlier {
		return
	}
	if s.HasFinalTable {
		// The times count from now, but not from later than WaitEnd: a WaitEnd that has passed must not move.
		r := n.tableRequest(s, times.Earlier(n.now, s.WaitEnd()), s.HostEnd)
		r.Old, r.DoneBuckets, r.Occupied = s.Timetable, d.bucket, n.occupied(s.Timetable.Schedule(), d.bucket)
		s.Timetable = timetable.New(r)
	} else {
		s.Timetable = n.preliminaryTable(s, s.Timetable.Received)
	}
	n.markDirty(s)
	n.emit(Effect{Do: KeepLock, Until: s.releaseBy()})
	d.shortenKills(n)
}

// shortenKills adapts the kills of the current bucket to its new, earlier window. Pods in their grace periods are killed again with
// the time that is left. Pods that wait for NotReady wait no longer than the window allows.
func (d *drain) shortenKills(n *Node) {
	table := d.shutdown.Timetable
	areBucketsOver := d.bucket >= len(table.Schedule())
	if areBucketsOver || len(d.podsOfBucket) == 0 {
		return
	}
	d.window = table.Window(d.bucket, n.now)
	for _, p := range d.podsOfBucket {
		if p.isTerminating() {
			n.killInCurrentBucket(p)
		}
		p.message.notReadyBy = times.Earlier(p.message.notReadyBy, d.window.Ready)
	}
}
