package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

var (
	errCancelled = errors.New("the shutdown was cancelled")
	errOvertaken = errors.New("the host leaves less time than it had announced")
	errHostsEnd  = errors.New("the host goes on")
	errTimeSpent = errors.New("the time for it was spent")

	errNotDelayed = errors.New("the host did not wait: no lock was held")
)

// podsStoredAtOnce is how many pods' reports are stored before the host is let go.
const podsStoredAtOnce = 1000

// drain goes through the buckets of one shutdown in a goroutine of its own.
type drain struct {
	m         *Manager
	ctx       context.Context // of Run
	event     Event
	number    uint64
	received  time.Time // the event
	began     time.Time // the same, or when a former agent received it
	hosted    bool      // the host announced it
	limit     time.Duration
	limited   bool   // whether the host has a limit
	epoch     uint64 // of the lock; 0: none is concerned
	local     bool   // the node does not shut down: nothing is stored or published
	setStatus func(*v1.PodStatus)
	said      *announcement // nil: nothing is published
	earlier   []*drain      // with pods that still end, the latest first
	stopped   context.Context
	stop      context.CancelCauseFunc // no further pod is signalled
	kills     context.Context         // of the killer's calls: ends with the host
	work      sync.WaitGroup          // the calls of the killer and of the hooks
	over      chan struct{}           // closed when all have ended

	timing  timing
	batches []*batch
	roster  roster
	errs    []error   // what went wrong beside the pods
	done    int       // so many buckets, from the first
	resumed *progress // of a former agent; nil: none
	writes  []*entry  // beside the drain
	final   Report    // read once over is closed

	straggled bool // pods have outlived the shutdown
}

// newDrain is a drain that has not begun. It reads nothing that could block.
func (m *Manager) newDrain(ctx context.Context, event Event, received time.Time) *drain {
	d := &drain{
		m:        m,
		ctx:      ctx,
		event:    event,
		received: received,
		began:    received,
		over:     make(chan struct{}),
	}
	d.limit, d.limited = m.limitOf(event, received)
	d.stopped, d.stop = context.WithCancelCause(ctx)
	d.setStatus = m.opts.Policy(event.Kind).setStatus()
	return d
}

// limitOf is how long there is for the drain of an event: until its deadline, and
// no longer than the plan allows.
func (m *Manager) limitOf(event Event, received time.Time) (limit time.Duration, limited bool) {
	limit, limited = m.opts.Plan.Limit, m.opts.Plan.Limit != 0
	if event.Deadline.IsZero() {
		return limit, limited
	}
	if left := event.Deadline.Sub(received); !limited || left < limit {
		limit = left
	}
	return limit, true
}

// state is what the node says while this drain goes on.
func (d *drain) state() NodeState {
	return NodeState{ShuttingDown: true, Kind: d.event.Kind, Since: d.began, Policy: d.m.opts.Policy(d.event.Kind)}
}

// outlasts tells whether the drain would go on for longer than another event
// leaves time for.
func (d *drain) outlasts(event Event) bool {
	if event.Deadline.IsZero() {
		return false
	}
	return !d.limited || event.Deadline.Before(d.received.Add(d.limit))
}

// run is the drain, from the event until every pod that was signalled has ended.
func (d *drain) run() {
	defer close(d.over)
	d.saveTimes(time.Time{})
	pods := d.m.opts.Pods()
	d.plan(pods)
	var release context.CancelFunc
	d.kills, release = context.WithDeadlineCause(d.ctx, d.timing.end, errHostsEnd)
	defer release()
	d.prepare(pods)
	d.startLate()
	d.buckets()
	ended := d.finish()
	d.work.Wait() // for stragglers, which the report names with their end
	d.conclude(ended)
}

// buckets goes through the buckets that are not done. One that is halted in its
// middle is not done: the next agent takes it up.
func (d *drain) buckets() {
	for d.done < len(d.timing.schedule) && !d.halted() {
		d.bucket(d.done)
		if !d.halted() {
			d.done++
			d.saveBeside()
		}
	}
}

// plan fits the schedule into the host's limit and fixes the end; what was begun
// by a former agent keeps its own.
func (d *drain) plan(pods []*v1.Pod) {
	if d.resumed != nil {
		d.timing = d.resumedTiming(d.m.planOptions())
		return
	}
	schedule := d.m.schedule
	if len(schedule) == 0 {
		schedule = ownGrace(pods)
	}
	d.timing = timing{
		start:    d.received,
		end:      d.received.Add(schedule.Total()),
		schedule: schedule,
		plan:     d.m.planOptions(),
	}
	if d.m.opts.Hold != nil {
		d.timing.end = d.timing.end.Add(d.m.opts.HoldTimeout)
	}
	if d.limited {
		var margin time.Duration
		d.timing.schedule, margin = schedule.fitInto(d.limit, d.m.opts.ReleaseMargin)
		d.timing.end = d.received.Add(d.limit - margin)
	}
}

// ownGrace is the schedule where none is configured: all pods at once, each with
// the grace of its own.
func ownGrace(pods []*v1.Pod) Schedule {
	seconds := graceperiod.DefaultSeconds
	for _, pod := range pods {
		if pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
			seconds = max(seconds, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
	return Schedule{{Seconds: seconds}}
}

// prepare waits, for a bounded time, until the node's state is published. The
// start is stored beside it: a slow disk costs the pods nothing.
func (d *drain) prepare(pods []*v1.Pod) {
	d.saveBeside()
	d.hold()
	if d.said != nil && d.m.opts.Reporter != nil {
		d.settled(d.said.settled, &d.said.err, d.received.Add(d.publishTime(pods)), "publish the node state")
	}
}

// startLate lets the pods work on until the schedule just fits before the host's
// end, if that is wished.
func (d *drain) startLate() {
	if d.resumed != nil || !d.limited || !d.m.opts.LateStart(d.event) {
		return
	}
	start := d.latestStart()
	d.await(d.stopped.Done(), start)
	d.startNotBefore(start)
}

// latestStart is when the first bucket has to start for the last one to end in
// time.
func (d *drain) latestStart() time.Time {
	return d.timing.end.Add(-d.timing.schedule.Total())
}

// startNotBefore shifts the buckets, unless they start later anyway.
func (d *drain) startNotBefore(start time.Time) {
	if d.timing.start.Before(start) {
		d.timing.start = start
		d.saveBeside()
	}
}

// settled waits for something that is done beside the drain, and notes its error,
// or that it was not done in time.
func (d *drain) settled(done <-chan struct{}, err *error, until time.Time, what string) {
	if d.await(done, until) {
		d.note(*err)
		return
	}
	d.note(fmt.Errorf("failed to %s: %w", what, errTimeSpent))
}

// saveBeside stores how far the drain has come while it goes on.
func (d *drain) saveBeside() {
	d.writes = append(d.writes, d.save(storeLag, d.progressReport()))
}

// save stores how far the drain has come.
func (d *drain) save(lag time.Duration, report func() Report) *entry {
	if d.local {
		return noEntry()
	}
	start, end := d.m.ledger.sinceBoot(d.timing.start), d.m.ledger.sinceBoot(d.timing.end)
	schedule, done := d.timing.schedule, d.done
	return d.m.ledger.writeProgress(d.writing(lag), func() progress {
		return progress{Start: start, HostEnd: end, Schedule: schedule, Done: done, Report: report()}
	})
}

// saveTimes stores the start and the end of a shutdown of the node, and shows them.
func (d *drain) saveTimes(ended time.Time) {
	if d.local {
		return
	}
	d.m.opts.Metrics.Times(d.began, ended)
	d.writes = append(d.writes, d.m.ledger.writeTimes(d.writing(storeLag), times{StartTime: d.began, EndTime: ended}))
}

func (d *drain) writing(lag time.Duration) writing {
	return writing{ctx: d.ctx, work: &d.work, shutdown: d.number, lag: lag}
}

// publishTime is what the publishing may cost: a quarter of the first bucket that
// has pods, at most.
func (d *drain) publishTime(pods []*v1.Pod) time.Duration {
	first := len(d.timing.schedule)
	for _, pod := range pods {
		first = min(first, d.timing.schedule.Index(d.timing.plan.Priority(pod)))
	}
	if first == len(d.timing.schedule) {
		return d.m.opts.PublishTimeout
	}
	return min(d.m.opts.PublishTimeout, d.timing.schedule[first].time()/4)
}

// bucket kills the pods of one bucket, and those of earlier ones that came late,
// waits for them, for their volumes and for their final statuses. A bucket
// without pods is skipped; one without time is signalled and not waited for.
func (d *drain) bucket(i int) {
	began := time.Now()
	share := d.timing.share(i, began)
	kills := d.due(i, share, began)
	if len(kills) == 0 {
		return
	}
	b := d.signal(kills)
	d.batches = append(d.batches, b)
	if d.timing.schedule[i].Seconds <= 0 {
		return
	}
	if !d.await(b.done, share.pods) {
		klog.FromContext(d.ctx).V(1).Info("Shutdown manager pod killing time out", "priority", d.timing.schedule[i].Priority)
	}
	d.unmount(kills, share.unmount)
	d.flush(kills, share.flush)
	d.m.opts.Metrics.Bucket(time.Since(began))
}

// due gives the pods that bucket i has to kill: those that are not above it and
// have not been signalled.
func (d *drain) due(i int, s share, now time.Time) []*kill {
	plan, schedule := &d.timing.plan, d.timing.schedule
	pods := d.roster.pick(d.m.opts.Pods(), func(pod *v1.Pod) bool { return schedule.Index(plan.Priority(pod)) <= i })
	kills := make([]kill, len(pods))
	for n, pod := range pods {
		kills[n].init(PlannedPod{Pod: pod, Priority: plan.Priority(pod)}, schedule[i], s, &d.received, now)
	}
	return d.roster.add(kills)
}

// await waits for done until a time or the end of Run, and tells whether it is.
func (d *drain) await(done <-chan struct{}, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-d.ctx.Done():
	}
	select {
	case <-done: // at the same moment
		return true
	default:
		return false
	}
}

// note keeps an error for the report; nil is none.
func (d *drain) note(err error) {
	if err != nil {
		d.errs = append(d.errs, err)
	}
}

// finish waits for stragglers and flushes what is left, until the host's end;
// then it reports and lets the host go on. A drain that the end of Run has
// interrupted has no end, so that the next agent resumes it.
func (d *drain) finish() (ended time.Time) {
	_, flush := d.timing.plan.reserves(time.Until(d.timing.end))
	for _, b := range d.batches {
		d.straggled = !d.await(b.done, d.timing.end.Add(-flush)) || d.straggled
	}
	d.flush(d.roster.all(), d.timing.end)
	if d.interrupted() {
		d.m.last.set(d.began, d.result(time.Time{}))
		return time.Time{}
	}
	if d.hosted && !d.retired() && !d.m.lock.status().Held {
		d.note(errNotDelayed)
	}
	ended = time.Now()
	report := d.result(ended)
	d.m.last.set(d.began, report)
	d.saveTimes(ended)
	d.store(ended, report)
	d.releasing()
	d.note(d.m.lock.release(d.epoch))
	if d.storesLater() {
		d.writes = append(d.writes, d.save(0, report))
	}
	return ended
}

// store stores the report before the host is let go. Of very many pods only the
// outline is: theirs is stored beside the release, for they would hold the host
// for longer than they took to end.
func (d *drain) store(ended time.Time, report func() Report) {
	if d.storesLater() {
		outline := d.outline(ended)
		report = func() Report { return outline }
	}
	stored := d.save(0, report)
	d.settled(stored.done, &stored.err, d.timing.end, "store the report")
}

// storesLater tells whether the pods' reports are stored beside the release.
func (d *drain) storesLater() bool { return len(d.roster.all()) > podsStoredAtOnce }

// conclude makes the report of a drain whose pods have all ended, and stores it
// if it says more than what is stored.
func (d *drain) conclude(ended time.Time) {
	for _, write := range d.writes {
		d.note(write.err)
	}
	report := d.result(ended)
	d.final = report()
	d.m.setReport(d.final)
	if d.interrupted() || !d.straggled {
		return
	}
	stored := d.save(0, func() Report { return d.final })
	<-stored.done
	if stored.err != nil {
		d.note(stored.err)
		d.final.Errors = texts(d.errs)
		d.m.setReport(d.final)
	}
}

// halted tells whether no further pod is to be signalled. The end of Run reaches
// the killer's calls and stopped in any order, so both are looked at.
func (d *drain) halted() bool { return d.ctx.Err() != nil || d.stopped.Err() != nil }

// interrupted tells whether Run has ended within the shutdown.
func (d *drain) interrupted() bool { return d.ctx.Err() != nil && !d.retired() }

// retired tells whether the shutdown was cancelled or overtaken. The end of Run
// is neither.
func (d *drain) retired() bool {
	cause := context.Cause(d.stopped)
	return errors.Is(cause, errCancelled) || errors.Is(cause, errOvertaken)
}
