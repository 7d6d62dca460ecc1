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
	// firstListTimeout bounds the wait for the first list if the schedule depends on it.
	firstListTimeout = 30 * time.Second
	// listWarmUp is how long after the first Step an empty list may come from an informer that is not
	// filled.
	listWarmUp     = time.Second
	defaultSeconds = graceperiod.DefaultSeconds
)

// stage is the stage of a drain. A drain goes through the stages in this order, and through those from
// listing to flushing once for each bucket.
type stage int

const (
	idle             stage = iota
	preparing              // Prepare stops whatever would start pods again
	planning               // the first list
	holding                // Hold lets another program move its work away
	publishing             // the node's state is published
	listing                // the pods are listed before a bucket
	awaitingNotReady       // the pods of a bucket are set NotReady, then killed
	awaitingEnds           // the pods of the bucket end
	unmounting             // their volumes are unmounted
	flushing               // the API server accepts their final statuses
	finalListing           // the pods are listed before the release
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

// drain is one pass through the timetable by this agent. Its results are in the Shutdown and the pods;
// nothing else of it is stored.
type drain struct {
	shutdown    *Shutdown // nil: no drain is in progress
	number      int       // counts the drains of this agent
	stage       stage
	stageBegan  time.Time // when the stage began
	listsBefore int       // the lists received before the one that the stage waits for

	call       int // the call that the stage waits for; 0: none
	isAnswered bool
	callErr    error // the result of the call

	wasFirstListEmpty bool // the first list was empty, and a second one is awaited
	bucket            int
	window            timetable.Window
	bucketBegan       time.Time // when the bucket began
	picked            []*Pod    // the pods of the bucket
	firstAwaited      int       // the index of the first pod that the stage may wait for
	unmarked          int       // pods killed before the API server accepted NotReady
}

func (d *drain) begin(n *Node, s *Shutdown) {
	d.stop(n)
	*d = drain{shutdown: s, number: d.number + 1, bucket: s.Done}
	n.api.retryNow()
	n.emit(Effect{Do: Begins, Shutdown: s, Text: "Shutdown manager processing shutdown event"})
	for _, text := range n.failures { // logged already
		n.addError(s, text)
	}
	n.failures, n.loggedFailure = nil, ""
	d.enterStage(n, preparing)
}

// stop stops the drain: no further pod is signalled.
func (d *drain) stop(n *Node) {
	if d.call != 0 && !d.isAnswered {
		n.emit(Effect{Do: Abort, Call: d.call})
	}
	for _, p := range d.picked {
		p.awaitsNotReady = false
		n.setWanted(p)
	}
	*d = drain{number: d.number}
}

// shortenTable makes the timetable again after the host's deadline moved earlier. No time moves later.
func (d *drain) shortenTable(n *Node) {
	s := d.shutdown
	if s == nil || s.local || !s.HostEnd.Before(s.end()) {
		return
	}
	if !s.Planned {
		s.setTable(n.newTable(s, timeOf(s.Timetable.Received)))
	} else {
		r := n.request(s, times.Earlier(n.now, s.waitEnd()), s.HostEnd) // a wait that is over does not change
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

// waitsFor reports whether a pod matches. It skips pods that did not match before, so that a stage does
// not check each pod on every Step.
func (d *drain) waitsFor(pods []*Pod, match func(*Pod) bool) bool {
	for d.firstAwaited < len(pods) && !match(pods[d.firstAwaited]) {
		d.firstAwaited++
	}
	return d.firstAwaited < len(pods)
}

func (d *drain) enterStage(n *Node, s stage) bool {
	d.stage, d.stageBegan, d.call, d.isAnswered, d.callErr, d.firstAwaited = s, n.now, 0, false, nil, 0
	steps := n.Options.Steps
	switch s {
	case preparing:
		if steps.Prepare && !d.shutdown.isPrepared {
			d.call = n.startCall(Effect{Do: Prepare, Until: d.prepareEnd()})
		}
	case planning, listing, finalListing:
		if d.listsBefore, d.picked = n.lister.lists, nil; s == listing && d.bucket == 0 && n.lister.isFresh(n) {
			d.listsBefore-- // the list of the plan came in this step
			break
		}
		n.lister.call(n)
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

// prepareEnd returns the deadline of Prepare: at most half of the time that the host leaves.
func (d *drain) prepareEnd() time.Time {
	return times.Earlier(d.stageBegan.Add(min(d.shutdown.table.Budget().Prepare, d.shutdown.end().Sub(d.stageBegan)/2)), d.shutdown.waitEnd())
}

// finishCall returns true once the call of the stage has returned or timed out. It then puts an error or a
// timeout into the report, and aborts a call that timed out.
func (d *drain) finishCall(n *Node, until time.Time) bool {
	switch {
	case d.call == 0 || d.isAnswered && d.callErr == nil:
	case !d.isAnswered && !n.reached(until):
		return false
	case n.now.Before(until):
		n.reportError(d.shutdown, d.stage.String()+" failed: "+d.callErr.Error())
	default: // a call that returns its context's error timed out too
		n.reportError(d.shutdown, d.stage.String()+" did not return in time")
		n.emit(Effect{Do: Abort, Call: d.call})
	}
	d.call = 0
	return true
}

// advance moves the drain on by one stage. It returns false if the drain has to wait.
func (n *Node) advance() bool {
	d, s := &n.drain, n.drain.shutdown
	if s == nil {
		return false
	}
	if !s.local && n.reached(s.releaseBy()) { // whatever the stage waits for
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
		if !s.local && !s.Published && !n.isPublished() {
			if !n.reached(times.Earlier(s.table.PublishEnd(), d.stageBegan.Add(s.table.Budget().Publish))) {
				return false
			}
			if s.table.Budget().Publish > 0 { // otherwise it is published while pods are killed
				n.reportError(s, "failed to publish the node state: "+n.api.lastError())
			}
		}
		if !s.local {
			s.Published = true
			n.markDirty(s)
		}
		return d.nextBucket(n)
	case listing:
		return d.pickBucket(n)
	case awaitingNotReady:
		return d.finishReadiness(n) && d.enterStage(n, awaitingEnds)
	case awaitingEnds:
		if d.waitsFor(d.picked, (*Pod).isTerminating) && !n.reached(d.window.KillsEnd) {
			return false
		}
		return d.enterStage(n, unmounting)
	case unmounting:
		return d.finishCall(n, d.window.UnmountsEnd) && d.enterStage(n, flushing)
	case flushing:
		isLast := d.bucket == len(s.table.Schedule())-1
		if !isLast && !n.isFlushed(d.picked, d.stageBegan, d.window.End) {
			return false
		}
		n.emit(Effect{Do: CountBucket, Took: n.now.Sub(d.bucketBegan)})
		return d.bucketDone(n)
	case finalListing:
		return d.pickLate(n)
	case awaitingAllEnds:
		if d.waitsFor(n.pods.all, func(p *Pod) bool { return p.belongsTo(s) && p.isTerminating() }) && !n.reached(s.waitEnd()) {
			return false
		}
		return d.enterStage(n, flushingAll)
	case flushingAll:
		if !n.isFlushed(n.pods.all, d.stageBegan, s.waitEnd()) {
			return false
		}
		if s.table.Budget().Publish == 0 && !s.local && !n.isPublished() && n.api.tries > 1 { // it failed while pods were killed
			n.reportError(s, "failed to publish the node state: "+n.api.lastError())
		}
		if pending := n.PendingStatuses(); pending > 0 {
			n.reportError(s, fmt.Sprintf("failed to flush the final statuses of %d pods: %s", pending, n.api.lastError()))
		}
		return d.enterStage(n, syncing)
	case syncing:
		return d.finishCall(n, s.releaseBy()) && d.enterStage(n, releasing)
	case releasing:
		return d.finishCall(n, s.releaseBy()) && d.finish(n)
	default:
		return false
	}
}

// finish ends the drain. The report still waits for pods that are terminating.
func (d *drain) finish(n *Node) bool {
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

// plan waits for the first list and makes the timetable, in which empty buckets may give up their time.
// Without a list no bucket counts as empty.
func (d *drain) plan(n *Node) bool {
	s, longest := d.shutdown, answerTimeout
	if len(n.Schedule) == 0 {
		longest = firstListTimeout
	}
	switch isListed := n.lister.lists > d.listsBefore; {
	case !isListed && !n.reached(times.Earlier(d.stageBegan.Add(longest), s.waitEnd())):
		n.lister.retry(n)
		return false
	case isListed && !d.wasFirstListEmpty && n.lister.isEmpty && !n.reached(n.startedAt.Add(listWarmUp)):
		return false
	case isListed && !d.wasFirstListEmpty && n.lister.isEmpty && d.stageBegan.Before(n.startedAt.Add(listWarmUp)):
		d.wasFirstListEmpty = true
		return d.enterStage(n, planning)
	}
	if n.lister.lists <= d.listsBefore {
		n.lister.reportTimeout(n)
	}
	if !s.Planned {
		s.Planned = true
		r := n.request(s, timeOf(s.Timetable.Received), s.HostEnd)
		if len(n.Schedule) == 0 && n.lister.lists > d.listsBefore {
			if limit := n.Options.Limit; limit != 0 {
				r.HostEnd = times.Earlier(r.HostEnd, r.Received.Add(max(limit, 0)))
			}
			r.Received = n.now // the pods' time begins after a slow list
		}
		if n.lister.lists > d.listsBefore {
			r.Occupied = n.occupied(r.Schedule, 0)
		}
		s.setTable(timetable.New(r))
	}
	s.Prepared, s.isPrepared = true, true
	n.markDirty(s)
	for _, p := range n.pods.all {
		if n.isDue(p) && !p.Meant && !p.isSignalled() {
			p.Meant = true
			n.markDirty(p)
		}
	}
	if !s.local {
		n.startCallAfterStore(Effect{Do: Sync})
		n.emit(Effect{Do: Suspend, Until: s.releaseBy()})
	}
	n.startCall(Effect{Do: OnPlan, Shutdown: s, Pods: n.Due()})
	return d.enterStage(n, holding)
}

// Due returns the pods that a drain has to kill.
func (n *Node) Due() (due []*Pod) {
	for _, p := range n.pods.all {
		if n.isDue(p) {
			due = append(due, p)
		}
	}
	return due
}

// occupied reports which buckets have pods, from the first unfinished one on.
func (n *Node) occupied(schedule plan.Schedule, done int) []bool {
	has := make([]bool, len(schedule))
	for _, p := range n.pods.all {
		if n.isDue(p) {
			has[min(max(schedule.Index(p.Priority), done), len(schedule)-1)] = true
		}
	}
	return has
}

// nextBucket starts the next bucket, or the final list.
func (d *drain) nextBucket(n *Node) bool {
	if d.bucket >= len(d.shutdown.table.Schedule()) {
		return d.enterStage(n, finalListing)
	}
	d.bucketBegan = n.now
	return d.enterStage(n, listing)
}

// bucketDone records that the bucket is over.
func (d *drain) bucketDone(n *Node) bool {
	d.bucket++
	d.shutdown.Done = d.bucket
	n.markDirty(d.shutdown)
	return d.nextBucket(n)
}

// pickBucket waits for a list and kills the pods of the bucket. Until the first list of all it waits to
// the end of the window; after answerTimeout it kills the pods that the log names.
func (d *drain) pickBucket(n *Node) bool {
	schedule := d.shutdown.table.Schedule()
	d.window = d.shutdown.table.Window(d.bucket, n.now)
	until := d.stageBegan.Add(answerTimeout)
	if n.lister.lists == 0 {
		until = d.window.End
	}
	isListed := n.lister.lists > d.listsBefore
	if !isListed && !n.reached(times.Earlier(until, d.shutdown.waitEnd())) {
		n.lister.retry(n)
		if n.lister.lists == 0 && n.reached(d.stageBegan.Add(answerTimeout)) {
			n.lister.reportTimeout(n)
			d.takeBucket(n, schedule.Index) // the pods of the log
			d.finishReadiness(n)
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

// finishReadiness returns true once no pod waits for NotReady any more. It kills the pods whose wait has
// timed out, and puts the pods that were not marked into the report.
func (d *drain) finishReadiness(n *Node) bool {
	if d.waitsFor(d.picked, func(p *Pod) bool {
		if p.awaitsNotReady && n.reached(p.update.notReadyBy) {
			n.signalWaiting(p, false)
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

// takeBucket kills, or sets NotReady first, the due pods of this bucket and of lower ones that this
// drain has not picked. A bucket whose time was cut to 0 leaves its pods to the next one; a bucket
// configured with 0 s kills its own.
func (d *drain) takeBucket(n *Node, index func(int32) int) {
	var due []*Pod
	bucket := d.shutdown.table.Budget().Buckets[d.bucket]
	for _, p := range n.pods.all {
		own := index(p.Priority)
		isTaken := own <= d.bucket && bucket.Pods > 0 || own == d.bucket && bucket.Seconds == 0
		if isTaken && p.pickedBy != d.number && n.isDue(p) {
			p.pickedBy = d.number
			due = append(due, p)
		}
	}
	slices.SortFunc(due, (*Pod).compare)
	d.picked = append(d.picked, due...)
	for _, p := range due {
		n.markNotReady(p, d.window.Ready)
	}
}

// pickLate kills the pods of the final list that this drain has not picked, within the remaining time.
func (d *drain) pickLate(n *Node) bool {
	if n.lister.lists <= d.listsBefore && !n.reached(times.Earlier(d.stageBegan.Add(answerTimeout), d.shutdown.waitEnd())) {
		n.lister.retry(n)
		return false
	}
	buckets := d.shutdown.table.Budget().Buckets
	d.bucket = len(buckets) - 1
	for d.bucket > 0 && buckets[d.bucket].Pods <= 0 {
		d.bucket-- // this bucket would give them 0 s
	}
	if n.now.Before(d.shutdown.waitEnd()) {
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
