package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// beginBucket starts the bucket d.bucket with a list of the pods, or the final list if all buckets are over.
func (d *drain) beginBucket(n *Node) (moved bool) {
	if areAllOver := d.bucket >= len(d.shutdown.Timetable.Schedule()); areAllOver {
		return d.enterStage(n, finalListing)
	}
	d.bucketBegan = n.now
	return d.enterStage(n, listing)
}

// finishBucket records for the next agent that the bucket is over, and starts the next one.
func (d *drain) finishBucket(n *Node) (moved bool) {
	d.bucket++
	d.shutdown.DoneBuckets = d.bucket
	n.markDirty(d.shutdown)
	return d.beginBucket(n)
}

// killBucketWhenListed waits for a new list, and then begins to kill the pods of the bucket. How long it waits:
//
//   - If an earlier list was received: for answerTimeout. It then uses the earlier list.
//   - If no list was received yet: until the end of the bucket's window. From answerTimeout on it kills the pods that the
//     log names, because no others are known.
func (d *drain) killBucketWhenListed(n *Node) (moved bool) {
	schedule := d.shutdown.Timetable.Schedule()
	d.window = d.shutdown.Timetable.Window(d.bucket, n.now)
	hasAnyList, answerEnd := n.lister.listCount > 0, d.stageBegan.Add(answerTimeout)
	waitUntil := answerEnd
	if !hasAnyList {
		waitUntil = d.window.End
	}
	if !d.awaitNewList(n, times.Earlier(waitUntil, d.shutdown.WaitEnd())) {
		if !hasAnyList && n.reachedOrWakeAt(answerEnd) { // kill the pods of the log
			n.lister.reportTimeout(n)
			d.killBucket(n, schedule.Index)
			d.finishNotReadyWaits(n)
		}
		return false
	}
	if !d.hasNewList(n) {
		n.lister.reportTimeout(n)
	}
	d.killBucket(n, schedule.Index)
	if len(d.picked) == 0 || schedule[d.bucket].Seconds <= 0 { // the drain does not wait for a bucket of 0 s
		return d.finishBucket(n)
	}
	return d.enterStage(n, awaitingNotReady)
}

// finishNotReadyWaits kills the picked pods whose NotReady the API server has not accepted in time (notReadyBy). It
// returns false while a pod still waits. Once none does, it reports how many pods were killed in this way.
func (d *drain) finishNotReadyWaits(n *Node) (isOver bool) {
	stillWaits := func(p *Pod) bool { // kills p if its time to wait is over
		if p.awaitsNotReady && n.reachedOrWakeAt(p.message.notReadyBy) {
			n.killWithoutNotReady(p)
		}
		return p.awaitsNotReady
	}
	if d.awaitsAny(d.picked, stillWaits) {
		return false
	}
	if d.killedWithoutNotReady > 0 {
		n.reportError(d.shutdown, fmt.Sprintf("failed to mark %d pods not ready: %s", d.killedWithoutNotReady, failureOrTimeout(d.notReadyFailure)))
		d.killedWithoutNotReady, d.notReadyFailure = 0, ""
	}
	return true
}

// killBucket sets the pods of the current bucket NotReady and kills them. indexOf returns the index of the bucket for a priority.
func (d *drain) killBucket(n *Node, indexOf func(priority int32) int) {
	due := d.pickPodsToKill(n, func(p *Pod) bool { return d.isKilledNow(indexOf(p.Priority)) })
	slices.SortFunc(due, (*Pod).compare)
	d.picked = append(d.picked, due...)
	for _, p := range due {
		n.markNotReadyThenKill(p, d.window.Ready)
	}
}

// includes reports whether the pods of a bucket are killed in the current one. A bucket whose time was cut to 0 kills no pods:
// the next bucket that has time kills them. A bucket that is configured with 0 s kills only its own pods.
func (d *drain) isKilledNow(bucket int) bool {
	current := d.shutdown.Timetable.Budget.Buckets[d.bucket]
	if hasTime := current.Pods > 0; hasTime {
		return bucket <= d.bucket
	}
	isConfiguredWithoutTime := current.Seconds == 0
	return isConfiguredWithoutTime && bucket == d.bucket
}

// pick returns the due pods for which isWanted is true and that this drain has not picked yet, and marks them as picked.
func (d *drain) pickPodsToKill(n *Node, isWanted func(*Pod) bool) []*Pod {
	picked := matching(n.pods.all, func(p *Pod) bool { return p.pickedByDrain != d.number && n.mustBeKilled(p) && isWanted(p) })
	for _, p := range picked {
		p.pickedByDrain = d.number
	}
	return picked
}

const (
	// listLag is how long after its end a pod may still be in a list, because the informer behind the list lags.
	listLag = time.Second
	// minKillTime is less than what it takes to stop a container and to notice its end.
	minKillTime = 10 * time.Millisecond
)

// isStillListed reports whether the final list has a pod whose kill has succeeded. The list of a correct agent may lag behind, so
// this counts only if the kill ended at least listLag before the list was requested, or took less than minKillTime and so cannot
// have stopped anything. A kill with the outcome "NotFound" had nothing to stop.
func (d *drain) isStillListed(n *Node, p *Pod) bool {
	wasStopped := p.pickedByDrain == d.number && !p.Ended.IsZero() && p.Outcome != "NotFound"
	isListed := p.lastListedIn == n.lister.listCount && !p.isListedAsEnded()
	listedAfterEnd := n.lister.newestCall > p.lastCallAtEnd
	wasShort := p.Ended.Sub(p.Signalled) < minKillTime
	endedLongBefore := d.stageBegan.Sub(p.Ended) >= listLag // the list was requested at stageBegan
	return wasStopped && isListed && listedAfterEnd && (wasShort || endedLongBefore)
}

// logStillListed logs that the final list has pods whose kills have succeeded. Such a kill may have returned before the pod had
// ended, and then the lock is released while the pod runs.
func (d *drain) logStillListed(n *Node) {
	suspects := matching(n.pods.all, func(p *Pod) bool { return d.isStillListed(n, p) })
	if len(suspects) > 0 {
		n.log(fmt.Sprintf("Options.ListPods still lists pods whose kills have succeeded: KillPod must return after the pod has ended, and ListPods must then leave the pod out (pods: %d, first: %s/%s)",
			len(suspects), suspects[0].Namespace, suspects[0].Name))
	}
}

// killLateWhenListed waits for the final list, and then kills the due pods that no bucket has picked, such as pods that
// were first listed after their bucket. They get the remaining time.
func (d *drain) killLatePodsWhenListed(n *Node) (moved bool) {
	if !d.awaitNewList(n, times.Earlier(d.stageBegan.Add(answerTimeout), d.shutdown.WaitEnd())) {
		return false
	}
	if d.hasNewList(n) {
		d.logStillListed(n)
	}
	d.bucket = lastWithTime(d.shutdown.Timetable.Budget.Buckets)
	if n.now.Before(d.shutdown.WaitEnd()) {
		d.window = d.shutdown.Timetable.Window(d.bucket, n.now)
		d.picked = d.pickPodsToKill(n, func(*Pod) bool { return true })
		for _, p := range d.picked { // shortenTable kills them again if the host leaves less time
			n.killInCurrentBucket(p)
		}
	}
	return d.enterStage(n, awaitingAllEnds)
}

// lastWithTime returns the index of the last bucket that has time for its pods; 0: none has.
func lastWithTime(buckets []plan.BucketBudget) int {
	last := len(buckets) - 1
	for last > 0 && buckets[last].Pods <= 0 {
		last--
	}
	return last
}
