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

// plan waits for the first list and then makes the timetable. If the host leaves too little time for all buckets, those
// without a pod give their time to the others.
//
//   - An empty list is not trusted until listWarmUp after the start of the agent: plan then lists once more.
//   - If no list comes in time, every bucket counts as having pods.
//   - Without a schedule, the pods of the list decide how long the only bucket is. So plan waits longer for the list, and
//     the drain's time counts from the end of that wait.
//
// If the previous agent has planned this shutdown, its timetable stays.
func (d *drain) planWhenListed(n *Node) (moved bool) {
	s, listTimeout := d.shutdown, answerTimeout
	if len(n.Schedule) == 0 {
		listTimeout = firstListTimeout
	}
	if !d.awaitNewList(n, times.Earlier(d.stageBegan.Add(listTimeout), s.WaitEnd())) {
		return false
	}
	hasList, warmUpEnd := d.hasNewList(n), n.startedAt.Add(listWarmUp)
	isFirstListEmpty := hasList && !d.wasFirstListEmpty && n.lister.isNewestEmpty
	if isFirstListEmpty && d.stageBegan.Before(warmUpEnd) { // an informer may not have been filled yet: list once more
		if !n.reachedOrWakeAt(warmUpEnd) {
			return false
		}
		d.wasFirstListEmpty = true
		return d.enterStage(n, planning)
	}
	if !hasList {
		n.lister.reportTimeout(n)
	}
	d.finishPlan(n, hasList)
	return d.enterStage(n, holding)
}

// finishPlan makes the timetable, stores it with the pods to kill, and passes both to OnPlan. hasList says that the pods are
// known.
func (d *drain) finishPlan(n *Node, hasList bool) {
	s := d.shutdown
	if !s.HasFinalTable {
		s.HasFinalTable = true
		d.makeFinalTable(n, hasList)
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

// makeFinalTable makes the timetable that replaces the preliminary one of newTable. hasList says that the pods are known.
func (d *drain) makeFinalTable(n *Node, hasList bool) {
	s := d.shutdown
	r := n.tableRequest(s, s.Timetable.Received, s.HostEnd)
	if hasList {
		r.Occupied = n.occupied(r.Schedule, d.bucket)
	}
	// Without a schedule, the pods decide how long the drain takes. Its time counts from the end of the wait for the list,
	// and not from a timer that fires late: the lock must not be released later than was announced.
	if len(n.Schedule) == 0 {
		if limit := n.Options.Limit; limit != 0 { // 0: no limit; negative: no time
			r.HostEnd = times.Earlier(r.HostEnd, r.Received.Add(max(limit, 0)))
		}
		r.Received = times.Earlier(n.now, s.WaitEnd()) // the time for a slow list is not taken from the pods' grace periods
	}
	s.Timetable = timetable.New(r)
}

// DuePods returns the pods that have not ended and that a drain has to kill or has signalled.
func (n *Node) PodsToKill() []*Pod { return matching(n.pods.all, n.mustBeKilled) }

// occupied returns, for each bucket of the schedule, whether it has pods to kill. The first doneBuckets are over: pods that
// they still have count for the first bucket that is not over, which kills them. If all buckets are over, such pods count
// for the last one.
func (n *Node) occupied(schedule plan.Schedule, doneBuckets int) []bool {
	hasPods := make([]bool, len(schedule))
	for _, p := range n.PodsToKill() {
		bucket := max(schedule.Index(p.Priority), doneBuckets)
		hasPods[min(bucket, len(schedule)-1)] = true
	}
	return hasPods
}

// shortenTable adapts the timetable if the host now shuts down (s.HostEnd) before the timetable ends. Until the drain is
// planned (s.Planned), it makes a new timetable. After that it shortens the old one, so that no time moves later. Pods of
// the current bucket that are in their grace periods are killed again, with the time that the bucket's new window leaves
// them; those that wait for NotReady wait no longer than that window allows. A drain of TerminateAll ignores the host's
// deadline.
func (d *drain) shortenTable(n *Node) {
	s := d.shutdown
	if s == nil || s.isTerminateAll {
		return
	}
	if endsEarlier := !s.HostEnd.IsZero() && s.HostEnd.Before(s.Timetable.End()); !endsEarlier {
		return
	}
	if !s.HasFinalTable {
		s.Timetable = n.preliminaryTable(s, s.Timetable.Received)
	} else {
		// The times count from now, but not from later than WaitEnd: a WaitEnd that has passed must not move.
		r := n.tableRequest(s, times.Earlier(n.now, s.WaitEnd()), s.HostEnd)
		r.Old, r.DoneBuckets, r.Occupied = s.Timetable, d.bucket, n.occupied(s.Timetable.Schedule(), d.bucket)
		s.Timetable = timetable.New(r)
	}
	n.markDirty(s)
	n.emit(Effect{Do: KeepLock, Until: s.releaseBy()})
	if areBucketsOver := d.bucket >= len(s.Timetable.Schedule()); areBucketsOver || len(d.picked) == 0 {
		return // no pod of the current bucket is being killed
	}
	d.window = s.Timetable.Window(d.bucket, n.now)
	for _, p := range d.picked {
		if p.isTerminating() {
			n.killInCurrentBucket(p)
		}
		p.message.notReadyBy = times.Earlier(p.message.notReadyBy, d.window.Ready)
	}
}
