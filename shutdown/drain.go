package shutdown

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// drain is one shutdown, from its event until every signalled pod has ended. Its steps are in
// run, in order. The state of each step belongs to one of the parts below.
type drain struct {
	drainRequest
	m    *Manager
	ctx  context.Context // of Run, or of TerminateAll
	halt halt            // stops the kills

	hooks    *hooks       // calls the functions of the Options
	statuses *podStatuses // sends readiness marks and final statuses
	killing  *killing     // picks and kills the pods
	record   *record      // stores progress and makes the report

	table      plan.Timetable
	unusedTime time.Duration             // that the pods of finished buckets left unused
	endsAt     atomic.Pointer[time.Time] // when the timetable ends the wait for pods; nil: there is no timetable yet

	published *publication         // the node state; nil: this drain publishes none
	done      *call.Future[Report] // completes when all signalled pods have ended
	complete  func(Report, error)
}

// run does the whole drain. The release of the host's lock does not depend on it: a timer
// releases the lock at the end of the host's time, even if run hangs.
func (d *drain) run() {
	logger := klog.FromContext(d.ctx)
	logger.V(1).Info("Shutdown manager processing shutdown event", "kind", d.event.Kind, "origin", d.event.Origin)
	d.record.storeBegin()
	d.statuses.setPolicy(d.hooks.policy(d.event.Kind))
	d.publish()
	listed := d.hooks.startListing()
	d.makeTimetable()
	d.hooks.onPlan(listed, d.table)
	d.record.storeTimetable(d.table)
	d.hooks.hold(d.halt.ctx, d.received.Add(d.table.Budget().Hold))
	d.awaitPublished()
	d.startLate()
	ctx, hostGoesOn := context.WithDeadlineCause(d.ctx, maxTime(d.table.Release(), time.Now().Add(answerTime)), errHostGoesOn)
	defer hostGoesOn()
	for i := d.record.bucketsDone(); i < len(d.table.Schedule()) && !d.halt.halted(); i++ {
		if d.bucket(ctx, i); !d.halt.halted() { // an interrupted bucket is left to the next agent
			d.record.storeBucketDone(i)
		}
	}
	if d.halt.cancelled() { // the drain may not have come to a bucket
		d.statuses.finishMarks(nil, d.halt)
	}
	straggled := !d.killing.awaitAll(ctx, d.table.Release())
	d.statuses.awaitAll(d.ctx, d.table)
	ended := d.releaseHost()
	d.killing.awaitStragglers(d.ctx, d.table.Release())
	report, err := d.record.finish(ended, straggled)
	d.hooks.onReport(report)
	d.complete(report, err)
}

// bucket drains bucket i. It kills the bucket's pods, and late pods of earlier buckets, and waits
// for them, for their volumes and for their final statuses. A bucket without pods is skipped. A
// bucket of 0 s is signalled and not waited for.
func (d *drain) bucket(ctx context.Context, i int) {
	start, bucket := time.Now(), d.table.Schedule()[i]
	window := d.table.Window(i, start, d.unusedTime)
	pods := d.hooks.listPods(d.ctx, maxTime(window.End, start.Add(answerTime)))
	chosen := d.killing.pick(d.ctx, pods, d.table.Schedule(), i)
	if len(chosen) == 0 {
		d.unusedTime = d.table.Skip(i, d.unusedTime)
		return
	}
	window = d.table.Window(i, time.Now(), d.unusedTime)
	batch := d.killing.start(ctx, chosen, window)
	if bucket.Seconds == 0 {
		return
	}
	killed, err := batch.Signalled.Await(d.ctx, window.Ready.Add(timerLag))
	if err != nil {
		killed = time.Now()
	}
	d.statuses.finishMarks(chosen, d.halt)
	if _, err = batch.Done.Await(d.ctx, window.KillsEnd(killed)); err != nil {
		klog.FromContext(d.ctx).V(1).Info("Shutdown manager pod killing time out", "gracePeriod", bucket.Seconds, "priority", bucket.Priority)
	}
	d.unusedTime = window.Left(killed, time.Since(killed))
	if !d.halt.halted() { // volumes stay mounted if the node goes on
		d.hooks.awaitUnmount(d.ctx, chosen, window.UnmountsEnd(killed))
	}
	if last := i == len(d.table.Schedule())-1; !last {
		d.statuses.awaitBucket(d.ctx, batch, chosen, window, d.table.Budget().Reserves[i].Statuses)
	}
	d.m.opts.Metrics.Bucket(time.Since(start))
}

// makeTimetable computes the timetable. A resumed shutdown keeps the timetable of the previous
// agent.
func (d *drain) makeTimetable() {
	defer func() {
		release := d.table.Release()
		d.endsAt.Store(&release)
		if d.epoch != 0 {
			d.m.lock.releaseAt(d.ctx, d.epoch, d.table.Unlock())
		}
	}()
	if d.resumed != nil {
		d.table = d.record.resumedTable(d.m.opts.Plan)
		return
	}
	schedule := d.m.schedule
	if len(schedule) == 0 {
		schedule = scheduleFromPods(d.hooks.listPods(d.ctx, d.received.Add(longestListTime)))
	}
	announcement := plan.Announcement{Received: d.received, HostEnd: d.event.Deadline, Late: d.hooks.lateStart(d.event)}
	options := d.m.opts.Plan
	options.Hooks.Hold = options.Hooks.Hold && !d.overtakes
	d.table = plan.NewTimetable(schedule, options, announcement)
}

// publish starts to publish the node state, unless an earlier drain of the same shutdown has. It
// asks the loop, because the loop knows whether this drain was cancelled: the state of a
// cancelled shutdown must not follow the state that reverts it.
func (d *drain) publish() {
	state := NodeState{ShuttingDown: true, Kind: d.event.Kind, Since: d.started, Policy: d.statuses.policy}
	d.m.inbox.postAndWait(func(l *loop) { d.published = l.publish(d, state) })
	if d.published != nil {
		d.statuses.answersBefore = d.published.answersBefore
	}
}

// awaitPublished waits until the node state is published, for the time that the plan reserves. A
// resumed drain waits only until the first bucket was to start, because the previous agent
// published the state before it began that bucket.
func (d *drain) awaitPublished() {
	if d.published == nil {
		return
	}
	until := d.published.startedAt.Add(d.table.Budget().Publish) // an earlier drain may have started it
	if d.resumed != nil {
		if until = d.table.First(); !time.Now().Before(until) {
			return
		}
	}
	d.record.addErr(d.published.await(d.halt.ctx, until))
}

// startLate waits for the start time of a drain that is to begin late (Options.LateStart).
func (d *drain) startLate() {
	if start := d.table.NotBefore(); !start.IsZero() {
		d.halt.wait(start)
	}
}

// releaseHost stores the report and releases the lock. If the lock of a previous agent is just
// being adopted, it waits for that first. It returns the end of the drain; the zero
// time if the end of Run interrupted the drain, so that the next agent resumes it.
func (d *drain) releaseHost() (ended time.Time) {
	if d.announced {
		d.m.lock.awaitAdoption(d.halt.ctx, d.table.Release())
	}
	if d.halt.interrupted() {
		d.record.keepUnfinished()
		return time.Time{}
	}
	if d.announced && !d.halt.halted() && !d.m.lock.hostWaits() {
		d.record.fail(errNotDelayed)
	}
	ended = time.Now()
	d.record.storeEnd(ended, d.table.Unlock())
	if !d.halt.halted() {
		d.hooks.onRelease(d.ctx, d.table.Unlock())
	}
	d.record.fail(d.m.lock.release(d.ctx, d.epoch))
	d.record.storePods(ended)
	klog.FromContext(d.ctx).V(1).Info("Shutdown manager completed processing shutdown event, node will shutdown shortly")
	return ended
}
