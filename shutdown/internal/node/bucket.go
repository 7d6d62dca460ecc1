package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// beginBucket begins the bucket d.bucket with a new list of the pods. If all buckets are over, it requests the final list.
func (d *drain) beginBucket(n *Node) (moved bool) {
	if areAllOver := d.bucket >= len(d.shutdown.Timetable.Schedule()); areAllOver {
		return d.enterStage(n, finalListing)
	}
	d.bucketBegan = n.now
	return d.enterStage(n, listing)
}

// finishBucket stores, for the next agent, that the bucket is over, and begins the next one.
func (d *drain) finishBucket(n *Node) (moved bool) {
	d.bucket++
	d.shutdown.DoneBuckets = d.bucket
	n.markDirty(d.shutdown)
	return d.beginBucket(n)
}

// killBucketWhenListed waits for a new list, and then begins to kill the pods of the bucket. If an earlier list was received, it
// waits for answerTimeout, and then uses that list. Before the first list it waits until the end of the bucket's window. From
// answerTimeout on it then kills the pods that the state log names, because no others are known.
func (d *drain) killBucketWhenListed(n *Node) (moved bool) {
	d.window = d.shutdown.Timetable.Window(d.bucket, n.now)
	hasAnyList, answerEnd := n.lister.listCount > 0, d.stageBegan.Add(answerTimeout)
	waitUntil := answerEnd
	if !hasAnyList {
		waitUntil = d.window.End
	}
	if !d.awaitNewList(n, times.Earlier(waitUntil, d.shutdown.WaitEnd())) {
		if !hasAnyList && n.reachedOrWakeAt(answerEnd) {
			n.lister.reportTimeout(n)
			d.killPodsOfBucket(n)
			d.finishNotReadyWaits(n)
		}
		return false
	}
	if !d.hasNewList(n) {
		n.lister.reportTimeout(n)
	}
	d.killPodsOfBucket(n)
	hasTime := d.shutdown.Timetable.Schedule()[d.bucket].Seconds > 0
	if len(d.podsOfBucket) == 0 || !hasTime { // nothing to wait for
		return d.finishBucket(n)
	}
	return d.enterStage(n, awaitingNotReady)
}

// finishNotReadyWaits kills the pods of the bucket whose NotReady the API server has not accepted in time. It returns false
// while a pod still waits for that. Once none does, it reports how many pods were killed in this way.
func (d *drain) finishNotReadyWaits(n *Node) (isOver bool) {
	awaitsNotReady := func(p *Pod) bool { return p.awaitsNotReady }
	for p := d.nextAwaited(d.podsOfBucket, awaitsNotReady); p != nil; p = d.nextAwaited(d.podsOfBucket, awaitsNotReady) {
		if !n.reachedOrWakeAt(p.message.notReadyBy) {
			return false
		}
		n.killWithoutNotReady(p)
	}
	if d.killedWithoutNotReady > 0 {
		n.reportError(d.shutdown, fmt.Sprintf("failed to mark %d pods not ready: %s", d.killedWithoutNotReady, failureOrTimeout(d.notReadyFailure)))
		d.killedWithoutNotReady, d.notReadyFailure = 0, ""
	}
	return true
}

// killPodsOfBucket sets the pods of the current bucket NotReady and kills them.
func (d *drain) killPodsOfBucket(n *Node) {
	schedule := d.shutdown.Timetable.Schedule()
	newlyPicked := d.pickPodsToKill(n, func(p *Pod) bool { return d.isKilledNow(schedule.Index(p.Priority)) })
	slices.SortFunc(newlyPicked, (*Pod).compare)
	d.podsOfBucket = append(d.podsOfBucket, newlyPicked...)
	for _, p := range newlyPicked {
		n.markNotReadyThenKill(p, d.window.Ready)
	}
}

// isKilledNow reports whether the pods of a bucket are killed together with those of the current one. A bucket whose time was cut to
// 0 kills no pods: the next bucket that has time kills them. A bucket that is configured with 0 s kills only its own pods.
func (d *drain) isKilledNow(bucket int) bool {
	current := d.shutdown.Timetable.Budget.Buckets[d.bucket]
	if hasTime := current.Pods > 0; hasTime { // Pods is the time for the pods of the bucket
		return bucket <= d.bucket
	}
	isConfiguredWithoutTime := current.Seconds == 0
	return isConfiguredWithoutTime && bucket == d.bucket
}

// pickPodsToKill returns those of the pods to kill for which isWanted is true and that this drain has not picked yet, and marks
// them as picked.
func (d *drain) pickPodsToKill(n *Node, isWanted func(*Pod) bool) []*Pod {
	isNew := func(p *Pod) bool { return p.pickedByDrain != d.number }
	picked := matching(n.pods.all, func(p *Pod) bool { return isNew(p) && n.mustBeKilled(p) && isWanted(p) })
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

// isStillListed reports whether the final list has a pod as running whose kill has succeeded. The list of a correct agent may lag
// behind, so this counts only if the kill ended at least listLag before the list was requested, or took less than minKillTime and
// so cannot have stopped anything.
func (d *drain) isStillListed(n *Node, p *Pod) bool {
	hasFoundNothing := p.Outcome == "NotFound"
	hasKilled := p.pickedByDrain == d.number && p.hasEnded() && !hasFoundNothing
	isListedAsRunning := n.isInNewestList(p) && !p.isListedAsEnded()
	wasShort := p.Ended.Sub(p.Signalled) < minKillTime
	endedLongBefore := d.stageBegan.Sub(p.Ended) >= listLag // the list was requested at stageBegan
	return hasKilled && isListedAsRunning && n.isNewestListAfterEndOf(p) && (wasShort || endedLongBefore)
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

// killLatePodsWhenListed waits for the final list, and then kills the pods that no bucket has picked, such as pods that
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
		anyPod := func(*Pod) bool { return true }
		d.podsOfBucket = d.pickPodsToKill(n, anyPod)
		for _, p := range d.podsOfBucket { // shortenTable kills them again if the host leaves less time
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
