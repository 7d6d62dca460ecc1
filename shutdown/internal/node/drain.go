package node

import (
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

const (
	// answerTimeout bounds the wait for a list.
	answerTimeout = time.Second
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

// callName returns the name of the stage's call in the errors of the report, at the beginning of a sentence: "Prepare
// failed: ...", "The unmount of the volumes did not return in time". Only the stages named here make a call.
func (s stage) callName() string {
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
	number          int       // the number of this agent's newest drain; kept while none is in progress
	stage           stage
	stageBegan      time.Time
	listCountBefore int // how many lists had been received when the stage began: it waits for another one

	call            int // the call that the stage waits for; 0: none
	hasCallReturned bool
	callErr         error // the result of the call

	wasFirstListEmpty bool             // the first list was empty, and a second one is awaited
	bucket            int              // the index of the current bucket
	window            timetable.Window // of the current bucket
	bucketBegan       time.Time
	podsOfBucket      []*Pod // that the current bucket kills
	awaitedIndex      int    // nextAwaited begins at this index

	killedWithoutNotReady int    // how many pods of the bucket were killed before the API server had accepted NotReady
	notReadyFailure       string // the last error of the call for one of them; "": none
}

// begin begins a drain of s at the first bucket that is not over, in place of the drain in progress, if any.
func (d *drain) begin(n *Node, s *Shutdown) {
	d.stop(n)
	*d = drain{shutdown: s, number: d.number + 1, bucket: s.DoneBuckets}
	n.api.retryFinalStatuses()
	n.emit(Effect{Do: LogDrainBegins, Shutdown: s, Text: "Shutdown manager processing shutdown event"})
	for _, text := range n.failuresOutsideDrains { // these were logged when they occurred
		n.addError(s, text)
	}
	n.failuresOutsideDrains, n.loggedFailure = nil, ""
	n.reportPolicyError(s)
	d.enterStage(n, preparing)
}

// stop stops the drain, if one is in progress: it signals no further pod, cancels the call that the stage waits for
// (such as Prepare or Unmount), and no longer sends NotReady. Kills in progress continue.
func (d *drain) stop(n *Node) {
	if d.call != 0 {
		n.emit(Effect{Do: Abort, Call: d.call})
	}
	for _, p := range d.podsOfBucket {
		p.awaitsNotReady = false
		n.queueAPIMessage(p)
	}
	*d = drain{number: d.number} // the next drain gets the next number
}

// nextAwaited returns the first of the pods for which the stage still waits; nil: it waits for none any more. The next call in the
// same stage begins at that pod, so that not every Step checks every pod.
func (d *drain) nextAwaited(pods []*Pod, isAwaited func(*Pod) bool) *Pod {
	for d.awaitedIndex < len(pods) {
		if p := pods[d.awaitedIndex]; isAwaited(p) {
			return p
		}
		d.awaitedIndex++
	}
	return nil
}

// hasNewList reports whether a list was received since the stage began.
func (d *drain) hasNewList(n *Node) bool { return n.lister.listCount > d.listCountBefore }

// awaitNewList returns false while the stage has to wait for a new list, at most until the given time. Failed calls are repeated.
func (d *drain) awaitNewList(n *Node, until time.Time) (isOver bool) {
	if d.hasNewList(n) || n.reachedOrWakeAt(until) {
		return true
	}
	n.lister.retryWhenDue(n)
	return false
}

// enterStage enters a stage, and starts what the stage then waits for. It always returns true, so that a method that returns moved
// can end with it.
func (d *drain) enterStage(n *Node, s stage) (moved bool) {
	d.stage, d.stageBegan, d.awaitedIndex = s, n.now, 0
	d.hasCallReturned, d.callErr = false, nil
	d.call = d.startStageCall(n)
	if s == planning || s == listing || s == finalListing {
		d.requestList(n)
	}
	return true
}

// startStageCall starts the call of the current stage and returns its number; 0: the stage has no call, or the call is not needed.
func (d *drain) startStageCall(n *Node) (number int) {
	s, steps := d.shutdown, n.Options.Steps
	switch {
	case d.stage == preparing && steps.Prepare && !s.hasCalledPrepare:
		return n.startCall(Effect{Do: Prepare, Until: d.prepareEnd()})
	case d.stage == holding && steps.Hold && !s.IsHoldOver:
		return n.startCall(Effect{Do: Hold, Until: s.Timetable.HoldEnd()})
	case d.stage == unmounting && steps.Unmount:
		return n.startCall(Effect{Do: Unmount, Pods: d.podsOfBucket, Until: d.window.UnmountsEnd})
	case d.stage == syncing && !s.isTerminateAll:
		return n.startCallAfterStore(Effect{Do: Sync})
	case d.stage == releasing && !s.isTerminateAll:
		return n.startCall(Effect{Do: OnRelease, Until: s.releaseBy()})
	default:
		return 0
	}
}

// requestList makes the current stage wait for a new list of the pods.
func (d *drain) requestList(n *Node) {
	d.listCountBefore, d.podsOfBucket = n.lister.listCount, nil
	isFirstBucket := d.stage == listing && d.bucket == 0
	if isFirstBucket && n.lister.isFresh(n) {
		d.listCountBefore-- // the list of the stage planning was received in this step, and counts for this stage too
	} else {
		n.lister.call(n)
	}
}

// prepareEnd returns the deadline of Prepare: normally that of the timetable. An agent that resumes the drain calls Prepare
// again, later than planned. Prepare then has its planned time, but at most half of the time that is left.
func (d *drain) prepareEnd() time.Time {
	table := d.shutdown.Timetable
	planned := table.Budget.Prepare
	halfOfRest := table.End().Sub(d.stageBegan) / 2
	end := times.Later(table.At(planned), d.stageBegan.Add(min(planned, halfOfRest)))
	return times.Earlier(end, table.WaitEnd())
}

// finishCall returns false while the stage has to wait for its call, at most until the given time. An error or a timeout goes into
// the report. A call that has timed out is aborted.
func (d *drain) finishCall(n *Node, until time.Time) (isOver bool) {
	hasSucceeded := d.hasCallReturned && d.callErr == nil
	switch {
	case d.call == 0 || hasSucceeded: // nothing to report
	case !d.hasCallReturned && !n.reachedOrWakeAt(until):
		return false
	case n.now.Before(until): // the call has returned an error
		n.reportError(d.shutdown, d.stage.callName()+" failed: "+d.callErr.Error())
	default: // an error after until counts as a timeout too: the call's context has ended
		n.reportError(d.shutdown, d.stage.callName()+" did not return in time")
		n.emit(Effect{Do: Abort, Call: d.call})
	}
	d.call = 0
	return true
}

// advanceDrain moves the drain on by one stage. It returns false if the drain has to wait, or none is in progress.
func (n *Node) advanceDrain() (moved bool) {
	d, s := &n.drain, n.drain.shutdown
	if s == nil {
		return false
	}
	mustReleaseLock := !s.isTerminateAll && n.reachedOrWakeAt(s.releaseBy()) // whatever the stage waits for
	if mustReleaseLock {
		return d.finish(n)
	}
	switch d.stage {
	case preparing:
		return d.finishCall(n, d.prepareEnd()) && d.enterStage(n, planning)
	case planning:
		return d.planWhenListed(n)
	case holding:
		if !d.finishCall(n, s.Timetable.HoldEnd()) {
			return false
		}
		s.IsHoldOver = true
		n.markDirty(s)
		return d.enterStage(n, publishing)
	case publishing:
		return d.finishPublish(n)
	case listing:
		return d.killBucketWhenListed(n)
	case awaitingNotReady:
		return d.finishNotReadyWaits(n) && d.enterStage(n, awaitingEnds)
	case awaitingEnds:
		if d.nextAwaited(d.podsOfBucket, (*Pod).isTerminating) != nil && !n.reachedOrWakeAt(d.window.KillsEnd) {
			return false
		}
		return d.enterStage(n, unmounting)
	case unmounting:
		return d.finishCall(n, d.window.UnmountsEnd) && d.enterStage(n, flushing)
	case flushing:
		isLastBucket := d.bucket == len(s.Timetable.Schedule())-1 // flushingAll waits for this bucket's final statuses
		if !isLastBucket && !n.finishFlush(d.podsOfBucket, d.stageBegan, d.window.End) {
			return false
		}
		n.emit(Effect{Do: CountBucket, Took: n.now.Sub(d.bucketBegan)})
		return d.finishBucket(n)
	case finalListing:
		return d.killLatePodsWhenListed(n)
	case awaitingAllEnds:
		isAwaited := func(p *Pod) bool { return p.isInReportOf(s) && p.isTerminating() }
		if d.nextAwaited(n.pods.all, isAwaited) != nil && !n.reachedOrWakeAt(s.WaitEnd()) {
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

// finishPublish waits until the API server has accepted the node's state, or the time for publishing is over. It then begins the
// first bucket that is not over.
func (d *drain) finishPublish(n *Node) (moved bool) {
	s := d.shutdown
	if s.isTerminateAll { // it publishes nothing, because the node stays up
		return d.beginBucket(n)
	}
	if !s.IsPublishOver && !n.isPublished() {
		publishTime := s.Timetable.Budget.Publish // 0: the node state is published while pods are killed
		publishEnd := times.Earlier(s.Timetable.PublishEnd(), d.stageBegan.Add(publishTime))
		if !n.reachedOrWakeAt(publishEnd) {
			return false
		}
		if publishTime > 0 {
			n.reportError(s, "failed to publish the node state: "+failureOrTimeout(n.api.publishFailure))
		}
	}
	s.IsPublishOver = true
	n.markDirty(s)
	return d.beginBucket(n)
}

// finishFlushAll waits until the API server has accepted all final statuses, or until the time for that is over. It then reports
// what the server has not accepted, and enters the stage syncing, which makes the log durable.
func (d *drain) finishFlushAll(n *Node) (moved bool) {
	s := d.shutdown
	if !n.finishFlush(n.pods.all, d.stageBegan, s.WaitEnd()) {
		return false
	}
	// Usually finishPublish has waited until the node state was published, and has reported the failure if it was not. If
	// publishing has no time of its own, the node state is published while pods are killed, and a failure is reported here.
	// TerminateAll publishes nothing.
	isPublishedDuringKills := s.Timetable.Budget.Publish == 0 && !s.isTerminateAll
	if isPublishedDuringKills && !n.isPublished() && n.api.publishTries > 1 { // 1: the first try may still be in progress
		n.reportError(s, "failed to publish the node state: "+failureOrTimeout(n.api.publishFailure))
	}
	n.reportPendingStatuses(s)
	return d.enterStage(n, syncing)
}

// finish ends the drain, and releases the lock unless the drain is that of TerminateAll. The report is made once the terminating
// pods have ended.
func (d *drain) finish(n *Node) (moved bool) {
	s := d.shutdown
	if d.call != 0 {
		n.reportError(s, d.stage.callName()+" did not return in time")
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
