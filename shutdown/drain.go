package shutdown

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// drain is one shutdown, from the event until every pod that was signalled has ended.
// What it does is in run, in order; the parts own what they do it with.
type drain struct {
	drainRequest
	m    *Manager
	ctx  context.Context // of Run, or of TerminateAll
	halt halt            // no further pod is signalled

	hooks    *hooks       // the embedder's functions
	statuses *podStatuses // what the API server is told of the pods
	killing  *killing     // the pods that are killed
	record   *record      // what is stored and reported

	table   plan.Timetable
	left    time.Duration             // of the pods' time, by the buckets that are done
	release atomic.Pointer[time.Time] // of the timetable; nil: it is not made yet

	published *publication         // the node's state; nil: nothing is published
	over      *call.Future[Report] // complete when all have ended
	conclude  func(Report, error)
}

// run is the drain. The lock of the host does not depend on it: the manager has it
// released at the end of the host's time, whatever happens here.
func (d *drain) run() {
	logger := klog.FromContext(d.ctx)
	logger.V(1).Info("Shutdown manager processing shutdown event", "kind", d.event.Kind, "origin", d.event.Origin)
	d.record.begun()
	d.statuses.setPolicy(d.hooks.policy(d.event.Kind))
	d.publish()
	listed := d.hooks.startList()
	d.plan()
	d.hooks.planned(listed, d.table)
	d.record.planned(d.table)
	d.hooks.hold(d.halt.ctx, d.received.Add(d.table.Budget().Hold))
	d.awaitPublished()
	d.startLate()
	ctx, hostGoesOn := context.WithDeadlineCause(d.ctx, later(d.table.Release(), time.Now().Add(answerTime)), errHostsEnd)
	defer hostGoesOn()
	for i := d.record.bucketsDone(); i < len(d.table.Schedule()) && !d.halt.is(); i++ {
		if d.bucket(ctx, i); !d.halt.is() { // else the next agent takes it up
			d.record.bucketDone(i)
		}
	}
	if d.halt.cancelled() { // it may not have come to a bucket
		d.statuses.settleMarks(nil, d.halt)
	}
	straggled := !d.killing.await(ctx, d.table.Release())
	d.statuses.awaitAll(d.ctx, d.table)
	ended := d.letGo()
	d.killing.awaitStragglers(d.ctx, d.table.Release())
	report, err := d.record.conclude(ended, straggled)
	d.hooks.reported(report)
	d.conclude(report, err)
}

// bucket kills the pods of one bucket, and those of earlier ones that came late,
// waits for them, for their volumes and for their final statuses. A bucket
// without pods is skipped; one without time is signalled and not waited for.
func (d *drain) bucket(ctx context.Context, i int) {
	began, bucket := time.Now(), d.table.Schedule()[i]
	window := d.table.Window(i, began, d.left)
	pods := d.hooks.list(d.ctx, later(window.End, began.Add(answerTime)))
	chosen := d.killing.pick(d.ctx, pods, d.table.Schedule(), i)
	if len(chosen) == 0 {
		d.left = d.table.Skip(i, d.left)
		return
	}
	window = d.table.Window(i, time.Now(), d.left)
	batch := d.killing.start(ctx, chosen, window)
	if bucket.Seconds == 0 {
		return
	}
	killed, err := batch.Signalled.Await(d.ctx, window.Ready.Add(timerLag))
	if err != nil {
		killed = time.Now()
	}
	d.statuses.settleMarks(chosen, d.halt)
	if _, err = batch.Done.Await(d.ctx, window.KillsEnd(killed)); err != nil {
		klog.FromContext(d.ctx).V(1).Info("Shutdown manager pod killing time out", "gracePeriod", bucket.Seconds, "priority", bucket.Priority)
	}
	d.left = window.Left(killed, time.Since(killed))
	if !d.halt.is() { // a node that goes on keeps its volumes
		d.hooks.unmount(d.ctx, chosen, window.UnmountsEnd(killed))
	}
	if last := i == len(d.table.Schedule())-1; !last {
		d.statuses.awaitBucket(d.ctx, batch, chosen, window, d.table.Budget().Reserves[i].Statuses)
	}
	d.m.opts.Metrics.Bucket(time.Since(began))
}

// plan works out the timetable. What a former agent began keeps its own.
func (d *drain) plan() {
	defer func() {
		release := d.table.Release()
		d.release.Store(&release)
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
		schedule = ownGrace(d.hooks.list(d.ctx, d.received.Add(longestList)))
	}
	announcement := plan.Announcement{Received: d.received, HostEnd: d.event.Deadline, Late: d.hooks.late(d.event)}
	options := d.m.opts.Plan
	options.Hooks.Hold = options.Hooks.Hold && !d.overtakes
	d.table = plan.NewTimetable(schedule, options, announcement)
}

// publish has the node's state published, unless another drain of the same shutdown has
// seen to it. Whether this one goes on is the loop's to know: a cancellation that came
// first is not to be followed by the state before it.
func (d *drain) publish() {
	if d.local {
		return
	}
	state := NodeState{ShuttingDown: true, Kind: d.event.Kind, Since: d.began, Policy: d.statuses.policy}
	d.m.inbox.ask(func(l *loop) { d.published = l.publish(d, state) })
	if d.published != nil {
		d.statuses.answers = d.published.answers
	}
}

// awaitPublished waits, for a bounded time, until the node's state is published. A drain
// that a former agent began waits only as long as that agent would have, because the
// state was published already if the first bucket was begun.
func (d *drain) awaitPublished() {
	if d.published == nil || d.m.opts.Reporter == nil {
		return
	}
	until := d.published.began.Add(d.table.Budget().Publish) // also if another drain began it
	if d.resumed != nil {
		if until = d.table.First(); !time.Now().Before(until) {
			return
		}
	}
	d.record.keep(d.published.await(d.halt.ctx, until))
}

// startLate lets the pods work on until the schedule just fits before the host's
// end, if that is wished.
func (d *drain) startLate() {
	if start := d.table.NotBefore(); !start.IsZero() {
		d.halt.wait(start)
	}
}

// letGo stores the report and lets the host go on. A drain that the end of Run has
// interrupted has no end, so that the next agent resumes it.
func (d *drain) letGo() (ended time.Time) {
	if d.halt.interrupted() {
		d.record.interrupted()
		return time.Time{}
	}
	if d.hosted && !d.halt.is() && !d.m.lock.delays() {
		d.record.fail(errNotDelayed)
	}
	ended = time.Now()
	d.record.ended(ended, d.table.Unlock())
	if !d.halt.is() {
		d.hooks.released(d.ctx, d.table.Unlock())
	}
	d.record.fail(d.m.lock.release(d.ctx, d.epoch))
	d.record.endedBeside(ended)
	klog.FromContext(d.ctx).V(1).Info("Shutdown manager completed processing shutdown event, node will shutdown shortly")
	return ended
}
