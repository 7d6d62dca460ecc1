package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	// answerTimeout bounds the wait for a list.
	answerTimeout = time.Second
	// firstListTimeout bounds the wait for the first list if no schedule is configured: the list then
	// decides how long the drain takes.
	firstListTimeout = 30 * time.Second
	// listWarmUp is how long after the first Step an empty list is not trusted: the informer behind it may
	// not be filled yet.
	listWarmUp = time.Second
	// defaultSeconds is the grace period of a pod without one, if no schedule is configured.
	defaultSeconds = graceperiod.DefaultSeconds
)

// stage is the stage of a drain. A drain goes through the stages in this order. It repeats those from listing
// to flushing for each bucket.
type stage int

const (
	idle             stage = iota
	preparing              // Prepare stops whatever would start pods again
	planning               // the first list
	holding                // Hold lets another program move its work away
	publishing             // the node's state is published
	listing                // the pods are listed again, because some may have started or ended since
	awaitingNotReady       // the pods of a bucket are set NotReady, then killed
	awaitingEnds           // the pods of the bucket end
	unmounting             // their volumes are unmounted
	flushing               // the API server accepts their final statuses
	finalListing           // the pods are listed after the last bucket, to kill those that no bucket has picked
	awaitingAllEnds        // all pods end
	flushingAll            // the API server accepts all final statuses
	syncing                // the log is synced
	releasing              // OnRelease
)

// String returns the name of a stage that is a call, as the report names it.
func (s stage) String() string {
	switch s {
	case preparing:
		return "Prepare"
	case holding:
		return "Hold"
	case unmounting:
		return "The unmount of the volumes"
	case syncing:
		return "Storing the shutdown"
	case releasing:
		return "OnRelease"
	default:
		return fmt.Sprintf("stage %d", int(s))
	}
}

// drain is one pass through the timetable by this agent. It is not stored: the next agent resumes from the
// Shutdown and the pods alone.
//
// A method that returns moved returns true if the drain has entered another stage or has ended, and false if
// it has to wait for an input or a time.
type drain struct {
	shutdown        *Shutdown // nil: no drain is in progress
	number          int       // the number of this drain: the agent counts its drains
	stage           stage
	stageBegan      time.Time
	listCountBefore int // how many lists had been received when the stage began to wait for another one

	call        int // the call that the stage waits for; 0: none
	hasReturned bool
	callErr     error // the result of the call

	wasFirstListEmpty bool             // the first list was empty, and a second one is awaited
	bucket            int              // the index of the current bucket
	window            timetable.Window // of the current bucket
	bucketBegan       time.Time
	picked            []*Pod // the pods of the current bucket
	firstAwaited      int    // findAwaited begins at this index
	killedUnmarked    int    // how many pods were killed before the API server had accepted NotReady
}

// begin begins a drain of s at the first bucket that is not over, in place of the drain in progress, if any.
func (d *drain) begin(n *Node, s *Shutdown) {
	d.stop(n)
	*d = drain{shutdown: s, number: d.number + 1, bucket: s.Done}
	n.api.retryNow()
	n.emit(Effect{Do: Begins, Shutdown: s, Text: "Shutdown manager processing shutdown event"})
	for _, text := range n.failures { // these were logged when they occurred
		n.addError(s, text)
	}
	n.failures, n.loggedFailure = nil, ""
	d.enterStage(n, preparing)
}

// stop stops the drain, if one is in progress: it signals no further pod, cancels the call that the stage waits for
// (such as Prepare or Unmount), and no longer sends NotReady for pods whose kills wait for that. Kills in progress
// continue.
func (d *drain) stop(n *Node) {
	if d.call != 0 && !d.hasReturned {
		n.emit(Effect{Do: Abort, Call: d.call})
	}
	for _, p := range d.picked {
		p.awaitsNotReady = false
		n.updateWanted(p)
	}
	*d = drain{number: d.number} // the next drain gets the next number
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
	if s.HostEnd.IsZero() || !s.HostEnd.Before(s.end()) {
		return
	}
	if !s.Planned {
		s.setTable(n.newTable(s, timeOf(s.Timetable.Received)))
	} else {
		// The times count from now, but not from later than WaitEnd: a WaitEnd that has passed must not move.
		r := n.tableRequest(s, times.Earlier(n.now, s.WaitEnd()), s.HostEnd)
		old := s.table
		r.Old, r.DoneBuckets, r.Occupied = &old, d.bucket, n.occupied(old.Schedule(), d.bucket)
		s.setTable(timetable.New(r))
	}
	n.markDirty(s)
	n.emit(Effect{Do: Suspend, Until: s.releaseBy()})
	if len(d.picked) == 0 || d.bucket >= len(s.table.Schedule()) {
		return
	}
	d.window = s.table.Window(d.bucket, n.now)
	for _, p := range d.picked {
		if p.isTerminating() {
			n.signal(p)
		}
		p.update.notReadyBy = times.Earlier(p.update.notReadyBy, d.window.Ready)
	}
}

// findAwaited moves d.firstAwaited to the first pod for which the stage still waits (isAwaited is true). It returns
// false if there is none. The next call in the same stage begins at that pod, so that not every Step checks every pod.
func (d *drain) findAwaited(pods []*Pod, isAwaited func(*Pod) bool) bool {
	for d.firstAwaited < len(pods) && !isAwaited(pods[d.firstAwaited]) {
		d.firstAwaited++
	}
	return d.firstAwaited < len(pods)
}

// enterStage enters a stage: it resets what belongs to the previous stage, and starts the call of the new one, if it has
// one. It always returns true, so that a method that returns moved can end with it.
func (d *drain) enterStage(n *Node, s stage) (moved bool) {
	d.stage, d.stageBegan = s, n.now
	d.call, d.hasReturned, d.callErr = 0, false, nil
	d.firstAwaited = 0
	steps := n.Options.Steps
	switch s {
	case preparing:
		if steps.Prepare && !d.shutdown.isPrepared {
			d.call = n.startCall(Effect{Do: Prepare, Until: d.prepareEnd()})
		}
	case planning, listing, finalListing:
		d.listCountBefore, d.picked = n.lister.listCount, nil
		if isFirstBucket := s == listing && d.bucket == 0; isFirstBucket && n.lister.isFresh(n) {
			d.listCountBefore-- // the list of the stage planning was received in this step, and counts for this stage too
		} else {
			n.lister.call(n)
		}
	case holding:
		if steps.Hold && !d.shutdown.Held {
			d.call = n.startCall(Effect{Do: Hold, Until: d.shutdown.table.HoldEnd()})
		}
	case unmounting:
		if steps.Unmount {
			d.call = n.startCall(Effect{Do: Unmount, Pods: d.picked, Until: d.window.UnmountsEnd})
		}
	case syncing:
		if !d.shutdown.isTerminateAll {
			d.call = n.startCallAfterStore(Effect{Do: Sync})
		}
	case releasing:
		if !d.shutdown.isTerminateAll {
			d.call = n.startCall(Effect{Do: OnRelease, Until: d.shutdown.releaseBy()})
		}
	default:
	}
	return true
}

// prepareEnd returns the deadline of Prepare, which gets at most half of the time that the host leaves.
func (d *drain) prepareEnd() time.Time {
	half := d.shutdown.end().Sub(d.stageBegan) / 2
	return times.Earlier(d.stageBegan.Add(min(d.shutdown.table.Budget().Prepare, half)), d.shutdown.WaitEnd())
}

// finishCall returns true if the stage waits for no call, or its call has returned or has timed out (at until). An
// error or a timeout goes into the report. A call that has timed out is aborted.
func (d *drain) finishCall(n *Node, until time.Time) bool {
	switch {
	case d.call == 0 || d.hasReturned && d.callErr == nil: // there is no call, or it has succeeded
	case !d.hasReturned && !n.reachedOrWakeAt(until):
		return false
	case n.now.Before(until): // the call has returned an error
		n.reportError(d.shutdown, d.stage.String()+" failed: "+d.callErr.Error())
	default: // an error after until counts as a timeout too: the call's context has ended
		n.reportError(d.shutdown, d.stage.String()+" did not return in time")
		n.emit(Effect{Do: Abort, Call: d.call})
	}
	d.call = 0
	return true
}

// advance moves the drain on by one stage. It returns false if the drain has to wait, or none is in progress.
func (n *Node) advance() (moved bool) {
	d, s := &n.drain, n.drain.shutdown
	if s == nil {
		return false
	}
	mustRelease := !s.isTerminateAll && n.reachedOrWakeAt(s.releaseBy()) // the lock, whatever the stage waits for
	if mustRelease {
		return d.finish(n)
	}
	switch d.stage {
	case preparing:
		return d.finishCall(n, d.prepareEnd()) && d.enterStage(n, planning)
	case planning:
		return d.plan(n)
	case holding:
		if !d.finishCall(n, s.table.HoldEnd()) {
			return false
		}
		s.Held = true
		n.markDirty(s)
		return d.enterStage(n, publishing)
	case publishing:
		return d.finishPublish(n)
	case listing:
		return d.pickBucket(n)
	case awaitingNotReady:
		return d.finishNotReadyWaits(n) && d.enterStage(n, awaitingEnds)
	case awaitingEnds:
		if d.findAwaited(d.picked, (*Pod).isTerminating) && !n.reachedOrWakeAt(d.window.KillsEnd) {
			return false
		}
		return d.enterStage(n, unmounting)
	case unmounting:
		return d.finishCall(n, d.window.UnmountsEnd) && d.enterStage(n, flushing)
	case flushing:
		isLastBucket := d.bucket == len(s.table.Schedule())-1 // the stage flushingAll waits for its final statuses
		if !isLastBucket && !n.finishFlush(d.picked, d.stageBegan, d.window.End) {
			return false
		}
		n.emit(Effect{Do: CountBucket, Took: n.now.Sub(d.bucketBegan)})
		return d.bucketDone(n)
	case finalListing:
		return d.pickLate(n)
	case awaitingAllEnds:
		isAwaited := func(p *Pod) bool { return p.belongsTo(s) && p.isTerminating() }
		if d.findAwaited(n.pods.all, isAwaited) && !n.reachedOrWakeAt(s.WaitEnd()) {
			return false
		}
		return d.enterStage(n, flushingAll)
	case flushingAll:
		return d.finishFlushAll(n)
	case syncing:
		return d.finishCall(n, s.releaseBy()) && d.enterStage(n, releasing)
	case releasing:
		return d.finishCall(n, s.releaseBy()) && d.finish(n)
	default:
		return false
	}
}

// finishPublish waits until the API server has accepted the node's state, or the time for publishing is over. Then it
// starts the first bucket.
func (d *drain) finishPublish(n *Node) (moved bool) {
	s := d.shutdown
	if s.isTerminateAll { // it publishes nothing, because the node stays up
		return d.nextBucket(n)
	}
	if !s.Published && !n.isPublished() {
		publishTime := s.table.Budget().Publish // 0: the node state is published while pods are killed
		if !n.reachedOrWakeAt(times.Earlier(s.table.PublishEnd(), d.stageBegan.Add(publishTime))) {
			return false
		}
		if publishTime > 0 {
			n.reportError(s, "failed to publish the node state: "+n.api.lastError())
		}
	}
	s.Published = true
	n.markDirty(s)
	return d.nextBucket(n)
}

// finishFlushAll waits until the API server has accepted all final statuses, or the wait is over. It reports what the
// server has not accepted, and enters the stage syncing.
func (d *drain) finishFlushAll(n *Node) (moved bool) {
	s := d.shutdown
	if !n.finishFlush(n.pods.all, d.stageBegan, s.WaitEnd()) {
		return false
	}
	// If publishing has no time of its own, the node state is published while pods are killed, and nothing has waited
	// for it so far.
	isPublishedDuringKills := s.table.Budget().Publish == 0 && !s.isTerminateAll
	if isPublishedDuringKills && !n.isPublished() && n.api.tries > 1 { // 1: the first try may still be in progress
		n.reportError(s, "failed to publish the node state: "+n.api.lastError())
	}
	if pending := n.PendingStatuses(); pending > 0 {
		n.reportError(s, fmt.Sprintf("failed to flush the final statuses of %d pods: %s", pending, n.api.lastError()))
	}
	return d.enterStage(n, syncing)
}

// finish ends the drain and releases the lock. The report is made later, once the terminating pods have ended.
func (d *drain) finish(n *Node) (moved bool) {
	s := d.shutdown
	if d.call != 0 {
		n.reportError(s, d.stage.String()+" did not return in time")
	}
	d.stop(n)
	if s.isTerminateAll {
		s.Ended = n.now
		n.queueReport(s)
	} else {
		n.release(s)
	}
	return true
}

// plan waits for the first list and then makes the timetable. If the host leaves too little time for all buckets, those
// without a pod give their time to the others.
//
//   - An empty list is not trusted until listWarmUp after the start of the agent: plan then lists once more.
//   - If no list comes in time, every bucket counts as having pods.
//   - Without a schedule, the pods of the list decide how long the only bucket is. So plan waits longer for the list, and
//     the drain's time counts from the list.
//
// If the previous agent has planned this shutdown, its timetable stays.
func (d *drain) plan(n *Node) (moved bool) {
	s, listTimeout := d.shutdown, answerTimeout
	if len(n.Schedule) == 0 {
		listTimeout = firstListTimeout
	}
	isListed, warmUpEnd := n.lister.listCount > d.listCountBefore, n.startedAt.Add(listWarmUp)
	isFirstAndEmpty := isListed && !d.wasFirstListEmpty && n.lister.isNewestEmpty
	switch {
	case !isListed && !n.reachedOrWakeAt(times.Earlier(d.stageBegan.Add(listTimeout), s.WaitEnd())):
		n.lister.retry(n)
		return false
	case isFirstAndEmpty && !n.reachedOrWakeAt(warmUpEnd): // an informer may not be filled yet
		return false
	case isFirstAndEmpty && d.stageBegan.Before(warmUpEnd): // list once more, now that the informer should be filled
		d.wasFirstListEmpty = true
		return d.enterStage(n, planning)
	}
	if !isListed {
		n.lister.reportTimeout(n)
	}
	if !s.Planned {
		s.Planned = true
		r := n.tableRequest(s, timeOf(s.Timetable.Received), s.HostEnd)
		if isListed && len(n.Schedule) == 0 {
			if limit := n.Options.Limit; limit != 0 { // 0: no limit; negative: no time
				r.HostEnd = times.Earlier(r.HostEnd, r.Received.Add(max(limit, 0)))
			}
			r.Received = n.now // the time for a slow list is not taken from the pods' grace periods
		}
		if isListed {
			r.Occupied = n.occupied(r.Schedule, 0)
		}
		s.setTable(timetable.New(r))
	}
	s.Prepared = true   // the timetable has no time for Prepare any more
	s.isPrepared = true // this agent does not call Prepare again; the next one does
	n.markDirty(s)
	for _, p := range n.pods.all {
		if n.isDue(p) && !p.Meant && !p.isSignalled() {
			p.Meant = true
			n.markPodDirty(p)
		}
	}
	if !s.isTerminateAll {
		n.startCallAfterStore(Effect{Do: Sync})
		n.emit(Effect{Do: Suspend, Until: s.releaseBy()})
	}
	n.startCall(Effect{Do: OnPlan, Shutdown: s, Pods: n.Due()})
	return d.enterStage(n, holding)
}

// Due returns the pods that have not ended and that a drain has to kill or has signalled.
func (n *Node) Due() (due []*Pod) {
	for _, p := range n.pods.all {
		if n.isDue(p) {
			due = append(due, p)
		}
	}
	return due
}

// occupied returns, for each bucket of the schedule, whether it has pods to kill. The first done buckets are over: pods
// that they still have count for the first bucket that is not over, which kills them. If all buckets are over, such pods
// count for the last one.
func (n *Node) occupied(schedule plan.Schedule, done int) []bool {
	has := make([]bool, len(schedule))
	for _, p := range n.pods.all {
		if n.isDue(p) {
			has[min(max(schedule.Index(p.Priority), done), len(schedule)-1)] = true
		}
	}
	return has
}

// nextBucket starts the bucket d.bucket with a list of the pods, or the final list if all buckets are over.
func (d *drain) nextBucket(n *Node) (moved bool) {
	if d.bucket >= len(d.shutdown.table.Schedule()) {
		return d.enterStage(n, finalListing)
	}
	d.bucketBegan = n.now
	return d.enterStage(n, listing)
}

// bucketDone records for the next agent that the bucket is over, and starts the next one.
func (d *drain) bucketDone(n *Node) (moved bool) {
	d.bucket++
	d.shutdown.Done = d.bucket
	n.markDirty(d.shutdown)
	return d.nextBucket(n)
}

// pickBucket waits for a new list, and then begins to kill the pods of the bucket. How long it waits:
//
//   - If an earlier list was received: for answerTimeout. It then uses the earlier list.
//   - If no list was received yet: until the end of the bucket's window. From answerTimeout on it kills the pods that the
//     log names, because no others are known.
func (d *drain) pickBucket(n *Node) (moved bool) {
	schedule := d.shutdown.table.Schedule()
	d.window = d.shutdown.table.Window(d.bucket, n.now)
	waitUntil := d.stageBegan.Add(answerTimeout)
	if n.lister.listCount == 0 {
		waitUntil = d.window.End
	}
	isListed := n.lister.listCount > d.listCountBefore
	if !isListed && !n.reachedOrWakeAt(times.Earlier(waitUntil, d.shutdown.WaitEnd())) { // still waiting
		n.lister.retry(n)
		if n.lister.listCount == 0 && n.reachedOrWakeAt(d.stageBegan.Add(answerTimeout)) {
			n.lister.reportTimeout(n)
			d.takeBucket(n, schedule.Index)
			d.finishNotReadyWaits(n)
		}
		return false
	}
	if !isListed {
		n.lister.reportTimeout(n)
	}
	d.takeBucket(n, schedule.Index)
	if len(d.picked) == 0 || schedule[d.bucket].Seconds <= 0 { // the drain does not wait for a bucket of 0 s
		return d.bucketDone(n)
	}
	return d.enterStage(n, awaitingNotReady)
}

// finishNotReadyWaits kills the picked pods that have waited too long for NotReady. It returns false while a pod
// still waits. At the end it reports how many pods were killed before the API server had accepted NotReady.
func (d *drain) finishNotReadyWaits(n *Node) bool {
	if d.findAwaited(d.picked, func(p *Pod) bool {
		if p.awaitsNotReady && n.reachedOrWakeAt(p.update.notReadyBy) {
			n.endNotReadyWait(p, false)
		}
		return p.awaitsNotReady
	}) {
		return false
	}
	if d.killedUnmarked > 0 {
		n.reportError(d.shutdown, fmt.Sprintf("failed to mark %d pods not ready: %s", d.killedUnmarked, n.api.lastError()))
		d.killedUnmarked = 0
	}
	return true
}

// takeBucket picks pods, sets them NotReady and kills them. It picks the due pods of the current bucket and of lower
// buckets that this drain has not picked yet. Two kinds of buckets have no time:
//
//   - A bucket whose time was cut to 0 picks no pods. The next bucket that has time picks them.
//   - A bucket that is configured with 0 s picks only its own pods.
//
// indexOf returns the index of the bucket for a priority.
func (d *drain) takeBucket(n *Node, indexOf func(priority int32) int) {
	var due []*Pod
	bucket := d.shutdown.table.Budget().Buckets[d.bucket]
	hasTime, isConfiguredWithoutTime := bucket.Pods > 0, bucket.Seconds == 0 // Pods is the time for the kills
	for _, p := range n.pods.all {
		podBucket := indexOf(p.Priority)
		isTaken := podBucket <= d.bucket && hasTime || podBucket == d.bucket && isConfiguredWithoutTime
		if isTaken && p.pickedBy != d.number && n.isDue(p) {
			p.pickedBy = d.number
			due = append(due, p)
		}
	}
	slices.SortFunc(due, (*Pod).compare)
	d.picked = append(d.picked, due...)
	for _, p := range due {
		n.markNotReadyThenKill(p, d.window.Ready)
	}
}

// pickLate waits for the final list, and then kills the due pods that no bucket has picked, such as pods that
// were first listed after their bucket. They get the remaining time.
func (d *drain) pickLate(n *Node) (moved bool) {
	isListed, until := n.lister.listCount > d.listCountBefore, d.stageBegan.Add(answerTimeout)
	if !isListed && !n.reachedOrWakeAt(times.Earlier(until, d.shutdown.WaitEnd())) {
		n.lister.retry(n)
		return false
	}
	buckets := d.shutdown.table.Budget().Buckets
	d.bucket = len(buckets) - 1
	for d.bucket > 0 && buckets[d.bucket].Pods <= 0 { // the window of a bucket without time would give them 0 s
		d.bucket--
	}
	if n.now.Before(d.shutdown.WaitEnd()) {
		d.window = d.shutdown.table.Window(d.bucket, n.now)
		for _, p := range n.pods.all {
			if p.pickedBy != d.number && n.isDue(p) {
				p.pickedBy = d.number
				n.signal(p)
			}
		}
	}
	return d.enterStage(n, awaitingAllEnds)
}
