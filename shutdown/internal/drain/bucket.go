package drain

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// bucket drains bucket i: it kills the pods of the bucket, late pods of earlier buckets, and those
// that a former drain has signalled, and waits for them, for their volumes and for their final
// statuses. A bucket without pods is skipped. A bucket of 0 s is signalled and not waited for.
func (d *Drain) bucket(i int) {
	start := time.Now()
	chosen, window, batches := d.killBucket(i)
	if len(chosen) == 0 {
		d.unused = d.table.Skip(i, d.unused)
		return
	}
	if d.table.Schedule()[i].Seconds == 0 {
		return
	}
	killed := d.killing.awaitSignalled(batches, window)
	d.killing.finishMarks()
	if !d.killing.await(batches, window.KillsEnd(killed)) {
		klog.FromContext(d.run).V(1).Info("Shutdown manager pod killing time out", "gracePeriod", d.table.Schedule()[i].Seconds, "priority", d.table.Schedule()[i].Priority)
	}
	d.unused = window.Left(killed, time.Since(killed))
	if !d.halted() { // volumes stay mounted if the node goes on
		d.awaitUnmount(d.run, chosen, window.UnmountsEnd(killed))
	}
	if i < len(d.table.Schedule())-1 {
		d.killing.awaitStatuses(batches, chosen, window, d.table.Budget().Reserves[i].Statuses)
	}
	d.BucketDone(time.Since(start))
}

// killBucket starts the kills of bucket i. While no list of pods is known it waits for one, but
// kills at once whom the record of a former agent names.
func (d *Drain) killBucket(i int) (chosen []*kills.Kill, window timetable.Window, batches []*kills.Batch) {
	kill := func() {
		window = d.table.Window(i, time.Now(), d.unused)
		schedule := d.table.Schedule()
		picked := d.picker.Pick(schedule[i].Priority, func(priority int32) bool { return schedule.Index(priority) <= i })
		if len(picked) > 0 {
			chosen = append(chosen, picked...)
			batches = append(batches, d.killing.start(picked, window))
		}
	}
	window = d.table.Window(i, time.Now(), d.unused)
	_, complete := d.list(time.Now().Add(answerTime))
	if !complete && !d.halted() {
		kill()
		_, complete = d.list(window.End)
	}
	if complete && !d.fitted { // the first list has come late
		d.fit(complete)
		d.awaitRecord(d.listener.Planned(d.table))
	}
	if !d.halted() {
		kill()
	}
	return chosen, window, batches
}

// awaitAll waits for all pods of the drain. Until they have ended it lists the pods again and again,
// because a list may have been empty when their bucket was drained.
func (d *Drain) awaitAll() (ended bool) {
	for !d.halted() && time.Now().Before(d.table.H()) {
		d.killLate()
		if d.killing.await(d.killing.batches, times.Earlier(d.table.H(), time.Now().Add(lateListPause))) {
			return true
		}
	}
	return d.killing.await(d.killing.batches, d.table.H())
}

// killLate lists the pods once more before the release, and kills those who have not ended with
// what is left.
func (d *Drain) killLate() {
	last := len(d.table.Schedule()) - 1
	if last < 0 {
		return
	}
	_, _ = d.list(times.Earlier(time.Now().Add(answerTime), d.table.H()))
	schedule := d.table.Schedule()
	picked := d.picker.Pick(schedule[last].Priority, func(int32) bool { return true })
	for last > 0 && schedule[last].Seconds == 0 {
		last-- // a bucket without time would leave them none
	}
	if len(picked) > 0 && !d.halted() {
		d.killing.start(picked, d.table.Window(last, time.Now(), unlimited))
	}
}

// needs returns how long each bucket needs for its pods: the longest grace period, at most the
// bucket's seconds, and these for a pod without one. Late pods of buckets that are done count for
// the next one.
func needs(schedule plan.Schedule, done int, due []*kills.Kill) []int64 {
	needs := make([]int64, len(schedule))
	for _, k := range due {
		i := min(max(schedule.Index(k.Priority), done), len(schedule)-1)
		need := max(graceperiod.ForNodeShutdown(k.Pod(), schedule[i].Seconds), 0)
		if left, signalled := k.Left(); signalled {
			need = min(need, left)
		}
		needs[i] = max(needs[i], need)
	}
	return needs
}

// ScheduleOf returns the schedule for a node that has none configured: one bucket that lasts as
// long as the longest grace period of a pod.
func ScheduleOf(pods []*v1.Pod) plan.Schedule {
	seconds := graceperiod.DefaultSeconds
	for _, pod := range pods {
		if pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
			seconds = max(seconds, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
	return plan.Schedule{{Seconds: seconds}}
}
