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
	listWarmUp     = time.Second
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
	shutdown    *Shutdown // nil: no drain is in progress
	number      int       // counts the drains of this agent
	stage       stage
	stageBegan  time.Time // when the stage began
	listsBefore int       // how many lists had come when the stage began to wait for another one

	call       int // the call that the stage waits for; 0: none
	isAnswered bool
	callErr    error // the result of the call

	wasFirstListEmpty bool             // the first list was empty, and a second one is awaited
	bucket            int              // the index of the current bucket
	window            timetable.Window // of the current bucket
	bucketBegan       time.Time
	picked            []*Pod // the pods of the current bucket
	firstAwaited      int    // findAwaited begins at this index
	unmarked          int    // pods killed before the API server accepted NotReady
}

// begin begins a drain of s at the first bucket that is not over, in place of the drain in progress, if any.
func (d *drain) begin(n *Node, s *Shutdown) {
	d.stop(n)
	*d = drain{shutdown: s, number: d.number + 1, bucket: s.Done}
	n.api.retryNow()
	n.emit(Effect{Do: Begins, Shutdown: s, Text: "Shutdown manager processing shutdown event"})
	for _, text := range n.failures { // they are logged already
		n.addError(s, text)
	}
	n.failures, n.loggedFailure = nil, ""
	d.enterStage(n, preparing)
}

// stop stops the drain, if one is in progress: no further pod is signalled. Kills in progress continue.
func (d *drain) stop(n *Node) {
	if d.call != 0 && !d.isAnswered {
		n.emit(Effect{Do: Abort, Call: d.call})
	}
	for _, p := range d.picked {
		p.awaitsNotReady = false
		n.updateWanted(p)
	}
	*d = drain{number: d.number}
}

// shortenTable makes the timetable anew if the host's deadline, s.HostEnd, is now earlier than the end of the
// current one. The final timetable, which plan has made, is only shortened, so that no time moves later. Pods of the
// current bucket that are in their grace periods are killed again with what is left of the bucket's time. A drain of
// TerminateAll has no deadline of a host, and stays as it is.
func (d *drain) shortenTable(n *Node) {
	s := d.shutdown
	if s == nil || s.local { // no deadline of the host applies
		return
	}
	if s.HostEnd.IsZero() || !s.HostEnd.Before(s.end()) {
		return
	}
	if !s.Planned {
		s.setTable(n.newTable(s, timeOf(s.Timetable.Received)))
	} else {
		// As if requested now; or at the end of the wait, if that is over: it must not move then.
		r := n.tableRequest(s, times.Earlier(n.now, s.WaitEnd()), s.HostEnd)
		before := s.table
		r.Before, r.Done, r.Occupied = &before, d.bucket, n.occupied(before.Schedule(), d.bucket)
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

// findAwaited moves d.firstAwaited to the first pod for which the stage still waits: isAwaited is true. It
// returns false if there is none. The next call in the same stage begins there, so that not each Step checks
// every pod.
func (d *drain) findAwaited(pods []*Pod, isAwaited func(*Pod) bool) bool {
	for d.firstAwaited < len(pods) && !isAwaited(pods[d.firstAwaited]) {
		d.firstAwaited++
	}
	return d.firstAwaited < len(pods)
}

// enterStage enters a stage: it resets what belongs to the previous one, and starts the stage's call, if it has one.
// It always returns true, so that a method that returns moved can end with it.
func (d *drain) enterStage(n *Node, s stage) (moved bool) {
	d.stage, d.stageBegan, d.call, d.isAnswered, d.callErr, d.firstAwaited = s, n.now, 0, false, nil, 0
	steps := n.Options.Steps
	switch s {
	case preparing:
		if steps.Prepare && !d.shutdown.isPrepared {
			d.call = n.startCall(Effect{Do: Prepare, Until: d.prepareEnd()})
		}
	case planning, listing, finalListing:
		d.listsBefore, d.picked = n.lister.lists, nil
		if isFirstBucket := s == listing && d.bucket == 0; isFirstBucket && n.lister.isFresh(n) {
			d.listsBefore-- // the list of the plan, which came in this step, counts for this stage too
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
		if !d.shutdown.local {
			d.call = n.startCallAfterStore(Effect{Do: Sync})
		}
	case releasing:
		if !d.shutdown.local {
			d.call = n.startCall(Effect{Do: OnRelease, Until: d.shutdown.releaseBy()})
		}
	default:
	}
	return true
}

// prepareEnd returns the deadline of Prepare. It gets at most half of the time that the host leaves.
func (d *drain) prepareEnd() time.Time {
	half := d.shutdown.end().Sub(d.stageBegan) / 2
	return times.Earlier(d.stageBegan.Add(min(d.shutdown.table.Budget().Prepare, half)), d.shutdown.WaitEnd())
}

// finishCall returns true if the stage waits for no call, or its call has returned or timed out at until. An
// error or a timeout goes into the report. A call that timed out is aborted.
func (d *drain) finishCall(n *Node, until time.Time) bool {
	switch {
	case d.call == 0 || d.isAnswered && d.callErr == nil: // there is no call, or it has succeeded
	case !d.isAnswered && !n.reachedOrWakeAt(until):
		return false
	case n.now.Before(until): // it has returned an error
		n.reportError(d.shutdown, d.stage.String()+" failed: "+d.callErr.Error())
	default: // an error that comes after until is that of the call's context: a timeout too
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
	if !s.local && n.reachedOrWakeAt(s.releaseBy()) { // the lock must be released now, whatever the stage waits for
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
		isLast := d.bucket == len(s.table.Schedule())-1 // flushingAll waits for its final statuses
		if !isLast && !n.finishFlush(d.picked, d.stageBegan, d.window.End) {
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

// finishPublish waits until the API server accepts the node's state, or the time for that is over, and then starts the
// first bucket.
func (d *drain) finishPublish(n *Node) (moved bool) {
	s := d.shutdown
	if s.local { // the node stays up
		return d.nextBucket(n)
	}
	if !s.Published && !n.isPublished() {
		if !n.reachedOrWakeAt(times.Earlier(s.table.PublishEnd(), d.stageBegan.Add(s.table.Budget().Publish))) {
			return false
		}
		if s.table.Budget().Publish > 0 { // without time of its own it is published while pods are killed
			n.reportError(s, "failed to publish the node state: "+n.api.lastError())
		}
	}
	s.Published = true
	n.markDirty(s)
	return d.nextBucket(n)
}

// finishFlushAll waits for all final statuses, reports what the API server has not accepted, and then syncs the log.
func (d *drain) finishFlushAll(n *Node) (moved bool) {
	s := d.shutdown
	if !n.finishFlush(n.pods.all, d.stageBegan, s.WaitEnd()) {
		return false
	}
	// Without time of its own, publishing was not waited for before the kills.
	publishesBesideKills := s.table.Budget().Publish == 0 && !s.local
	if publishesBesideKills && !n.isPublished() && n.api.tries > 1 { // the first try may still be in progress
		n.reportError(s, "failed to publish the node state: "+n.api.lastError())
	}
	if pending := n.PendingStatuses(); pending > 0 {
		n.reportError(s, fmt.Sprintf("failed to flush the final statuses of %d pods: %s", pending, n.api.lastError()))
	}
	return d.enterStage(n, syncing)
}

// finish ends the drain and releases the lock. The report still waits for pods that are terminating.
func (d *drain) finish(n *Node) (moved bool) {
	s := d.shutdown
	if d.call != 0 {
		n.reportError(s, d.stage.String()+" did not return in time")
	}
	d.stop(n)
	if s.local {
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
//   - An empty list is not trusted until listWarmUp after the start of the agent: plan lists once more then.
//   - If no list comes in time, every bucket counts as having pods.
//   - Without a schedule plan waits longer for the list, which says how long the bucket is. The drain's time then counts
//     from the list.
//
// If the drain resumes after a plan of the previous agent, that timetable stays.
func (d *drain) plan(n *Node) (moved bool) {
	s, longest := d.shutdown, answerTimeout
	if len(n.Schedule) == 0 {
		longest = firstListTimeout
	}
	isListed, warmUpEnd := n.lister.lists > d.listsBefore, n.startedAt.Add(listWarmUp)
	isFirstAndEmpty := isListed && !d.wasFirstListEmpty && n.lister.isEmpty
	switch {
	case !isListed && !n.reachedOrWakeAt(times.Earlier(d.stageBegan.Add(longest), s.WaitEnd())):
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
	s.Prepared, s.isPrepared = true, true // for the timetable, and for this agent: the next one calls Prepare again
	n.markDirty(s)
	for _, p := range n.pods.all {
		if n.isDue(p) && !p.Meant && !p.isSignalled() {
			p.Meant = true
			n.markPodDirty(p)
		}
	}
	if !s.local {
		n.startCallAfterStore(Effect{Do: Sync})
		n.emit(Effect{Do: Suspend, Until: s.releaseBy()})
	}
	n.startCall(Effect{Do: OnPlan, Shutdown: s, Pods: n.Due()})
	return d.enterStage(n, holding)
}

// Due returns the pods that a drain has to kill, or has signalled and waits for.
func (n *Node) Due() (due []*Pod) {
	for _, p := range n.pods.all {
		if n.isDue(p) {
			due = append(due, p)
		}
	}
	return due
}

// occupied returns, for each bucket of the schedule, whether it has pods to kill. The first done buckets are over. If such
// a bucket still has pods, the first bucket that is not over kills them, so they count for that one; if all are over, for
// the last one.
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

// pickBucket waits for a list, and then begins to kill the pods of the bucket. How long it waits:
//
//   - If there was a list before: for answerTimeout. Then it uses that list.
//   - If there was none yet: until the end of the bucket's window. From answerTimeout on it kills the pods that the log
//     names, because it knows no others.
func (d *drain) pickBucket(n *Node) (moved bool) {
	schedule := d.shutdown.table.Schedule()
	d.window = d.shutdown.table.Window(d.bucket, n.now)
	waitUntil := d.stageBegan.Add(answerTimeout)
	if n.lister.lists == 0 {
		waitUntil = d.window.End
	}
	isListed := n.lister.lists > d.listsBefore
	if !isListed && !n.reachedOrWakeAt(times.Earlier(waitUntil, d.shutdown.WaitEnd())) { // still waiting
		n.lister.retry(n)
		if n.lister.lists == 0 && n.reachedOrWakeAt(d.stageBegan.Add(answerTimeout)) {
			n.lister.reportTimeout(n)
			d.takeBucket(n, schedule.Index) // the only pods known are those of the log
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
	if d.unmarked > 0 {
		n.reportError(d.shutdown, fmt.Sprintf("failed to mark %d pods not ready: %s", d.unmarked, n.api.lastError()))
		d.unmarked = 0
	}
	return true
}

// takeBucket picks pods, sets them NotReady and kills them. It picks the due pods of the current bucket and of
// lower ones that this drain has not picked yet. Two kinds of buckets have no time:
//
//   - One whose time was cut to 0 picks none. Its pods are picked by the next bucket that has time.
//   - One configured with 0 s picks its own pods only.
//
// index returns the bucket of a priority.
func (d *drain) takeBucket(n *Node, index func(priority int32) int) {
	var due []*Pod
	bucket := d.shutdown.table.Budget().Buckets[d.bucket]
	hasTime, isConfiguredWithoutTime := bucket.Pods > 0, bucket.Seconds == 0 // Pods is the time for the kills
	for _, p := range n.pods.all {
		own := index(p.Priority)
		isTaken := own <= d.bucket && hasTime || own == d.bucket && isConfiguredWithoutTime
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
	isListed, until := n.lister.lists > d.listsBefore, d.stageBegan.Add(answerTimeout)
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
