package shutdown

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

var (
	errCancelled = errors.New("the shutdown was cancelled")
	errOvertaken = errors.New("the host leaves less time than it had announced")
	errHostsEnd  = errors.New("the host goes on")
	errTimeSpent = errors.New("the time for it was spent")

	errNotDelayed = errors.New("the host did not wait: no lock was held")
)

// drain goes through the buckets of one shutdown in a goroutine of its own.
type drain struct {
	m        *Manager
	ctx      context.Context // of Run
	event    Event
	number   uint64
	received time.Time                 // the event
	began    time.Time                 // the same, or when a former agent received it
	hosted   bool                      // the host announced it
	hostEnd  time.Time                 // when the host goes on; zero: it has no limit
	release  atomic.Pointer[time.Time] // of the timetable; nil: it is not made yet
	overtook bool                      // another drain of the same shutdown, and its hold
	epoch    uint64                    // of the lock; 0: none is concerned
	local    bool                      // the node does not shut down: nothing is stored or published
	policy   PodPolicy
	said     *announcement // nil: nothing is published
	earlier  []*drain      // with pods that still end, the latest first
	stopped  context.Context
	stop     context.CancelCauseFunc // no further pod is signalled
	kills    context.Context         // of the killer's calls: ends with the host
	work     sync.WaitGroup          // the calls of the killer and of the hooks
	over     chan struct{}           // closed when all have ended

	table   plan.Timetable
	left    time.Duration // of the pods' time, by the buckets that are done
	batches []*batch
	roster  roster
	errs    []error   // what went wrong beside the pods
	done    int       // so many buckets, from the first
	resumed *progress // of a former agent; nil: none
	beside  []*entry  // what is stored and said beside the drain
	final   Report    // read once over is closed

	reserve   time.Duration // left for the API server, of what the bucket keeps for it
	ending    bool          // the host is about to go down
	straggled bool          // pods have outlived the shutdown
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
	d.hostEnd, _ = m.opts.Plan.HostEnd(d.announcement())
	d.stopped, d.stop = context.WithCancelCause(ctx)
	return d
}

// announcement is what the timetable begins with.
func (d *drain) announcement() plan.Announcement {
	return plan.Announcement{Received: d.received, HostEnd: d.event.Deadline}
}

// state is what the node says while this drain goes on.
func (d *drain) state() NodeState {
	return NodeState{ShuttingDown: true, Kind: d.event.Kind, Since: d.began, Policy: d.policy}
}

// outlasts tells whether the drain would go on for longer than another event
// leaves time for.
func (d *drain) outlasts(event Event, received time.Time) bool {
	if event.Deadline.IsZero() {
		return false
	}
	if release := d.release.Load(); release != nil {
		return d.m.releaseFor(event, received).Before(*release)
	}
	return d.hostEnd.IsZero() || event.Deadline.Before(d.hostEnd)
}

// releaseFor is when a host has to be let go that goes on at the deadline of an event.
func (m *Manager) releaseFor(event Event, received time.Time) time.Time {
	return event.Deadline.Add(-plan.NewBudget(nil, m.opts.Plan).Fit(event.Deadline.Sub(received)).Margin)
}

// run is the drain, from the event until every pod that was signalled has ended.
func (d *drain) run() {
	defer close(d.over)
	d.saveTimes(time.Time{})
	pods := d.m.opts.Pods()
	d.plan(pods)
	var release context.CancelFunc
	d.kills, release = context.WithDeadlineCause(d.ctx, d.table.Release(), errHostsEnd)
	defer release()
	d.prepare()
	d.startLate()
	d.buckets()
	ended := d.finish()
	d.spareUnsignalled()
	d.work.Wait() // for stragglers, which the report names with their end
	d.conclude(ended)
}

// buckets goes through the buckets that are not done. One that is halted in its
// middle is not done: the next agent takes it up.
func (d *drain) buckets() {
	for d.done < len(d.table.Schedule()) && !d.halted() {
		d.bucket(d.done)
		if !d.halted() {
			d.done++
			d.saveBeside()
		}
	}
}

// bucket kills the pods of one bucket, and those of earlier ones that came late,
// waits for them, for their volumes and for their final statuses. A bucket
// without pods is skipped; one without time is signalled and not waited for.
func (d *drain) bucket(i int) {
	began := time.Now()
	pods := d.due(i)
	if len(pods) == 0 {
		d.left = d.table.Skip(i, d.left)
		return
	}
	window := d.table.Window(i, began, d.left)
	d.reserve = d.table.Budget().Reserves[i].Statuses
	if d.markNotReady(pods, window.Ready); d.halted() {
		d.spare(pods)
		return
	}
	killed, bucket := time.Now(), d.table.Schedule()[i]
	kills := d.enter(pods, bucket, window, killed)
	b := d.signal(kills)
	d.batches = append(d.batches, b)
	if bucket.Seconds == 0 {
		return
	}
	if !d.await(b.done, window.Killed(killed)) {
		klog.FromContext(d.ctx).V(1).Info("Shutdown manager pod killing time out", "priority", bucket.Priority)
	}
	d.left = window.Left(killed, time.Since(killed))
	unmounted := window.Unmounted(killed)
	d.unmount(kills, unmounted)
	// Pods that use all of their grace end a moment after it, and their final statuses
	// belong into this bucket's flush.
	d.await(b.done, unmounted.Add(d.reserve/2))
	d.flush(kills, window.End)
	d.m.opts.Metrics.Bucket(time.Since(began))
}

// due gives the pods that bucket i has to kill: those that are not above it and
// have not been signalled.
func (d *drain) due(i int) []*v1.Pod {
	schedule := d.table.Schedule()
	return d.roster.pick(d.m.opts.Pods(), func(pod *v1.Pod) bool { return schedule.Index(d.m.opts.Plan.Priority(pod)) <= i })
}

// enter works out what each pod of a bucket is granted, and makes the kills known.
func (d *drain) enter(pods []*v1.Pod, bucket plan.Bucket, window plan.Window, now time.Time) []*kill {
	kills := make([]kill, len(pods))
	for n, pod := range pods {
		kills[n].init(pod, d.m.opts.Plan.Priority(pod), bucket, window, &d.received, now)
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

// halted tells whether no further pod is to be signalled. The end of Run reaches
// the killer's calls and stopped in any order, so both are looked at.
func (d *drain) halted() bool { return d.ctx.Err() != nil || d.stopped.Err() != nil }

// interrupted tells whether Run has ended within the shutdown.
func (d *drain) interrupted() bool { return d.ctx.Err() != nil && !d.retired() }

// cancelled tells whether the shutdown was called off.
func (d *drain) cancelled() bool { return errors.Is(context.Cause(d.stopped), errCancelled) }

// retired tells whether the shutdown was cancelled or overtaken. The end of Run
// is neither.
func (d *drain) retired() bool {
	return d.cancelled() || errors.Is(context.Cause(d.stopped), errOvertaken)
}
