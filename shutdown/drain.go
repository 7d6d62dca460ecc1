package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

var (
	errCancelled = errors.New("the shutdown was cancelled")
	errOvertaken = errors.New("the host leaves less time than it had announced")
	errHostsEnd  = errors.New("the host goes on")
	errTimeSpent = errors.New("the time for it was spent")
)

// drain goes through the buckets of one shutdown in a goroutine of its own.
// What it shares with others is below its mutex.
type drain struct {
	m         *Manager
	ctx       context.Context // of Run
	event     Event
	began     time.Time // when the event was received
	limit     time.Duration
	limited   bool // whether the host has a limit
	epoch     uint64
	setStatus func(*v1.PodStatus)
	said      *announcement
	earlier   []*drain // with pods that still end, the latest first
	stopped   context.Context
	stop      context.CancelCauseFunc // no further pod is signalled
	kills     context.Context         // of the killer's calls: ends with the host
	work      sync.WaitGroup          // the calls of the killer and of the hooks

	timing  timing
	batches []*batch
	order   []*kill // as signalled
	errs    []error // what went wrong beside the pods
	ended   time.Time

	mu    sync.Mutex // guards known
	known map[types.UID]*kill
}

// newDrain is a drain that has not begun. It reads nothing that could block.
func (m *Manager) newDrain(ctx context.Context, event Event, received time.Time) *drain {
	d := &drain{m: m, ctx: ctx, event: event, began: received, known: map[types.UID]*kill{}}
	d.limit, d.limited = m.limitOf(event, received)
	d.stopped, d.stop = context.WithCancelCause(ctx)
	d.setStatus = m.opts.Policy(event.Kind).setStatus()
	d.epoch = m.lock.suspend()
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
	return !d.limited || event.Deadline.Before(d.began.Add(d.limit))
}

// run is the drain, from the event until every pod that was signalled has ended.
func (d *drain) run() {
	d.m.opts.Metrics.Times(d.began, time.Time{})
	pods := d.m.opts.Pods()
	d.plan(pods)
	var release context.CancelFunc
	d.kills, release = context.WithDeadlineCause(d.ctx, d.timing.end, errHostsEnd)
	defer release()
	d.prepare(pods)
	for i := range d.timing.schedule {
		if d.stopped.Err() != nil {
			break
		}
		d.bucket(i)
	}
	d.finish()
	d.work.Wait() // for stragglers, which the report names with their end
	d.m.setReport(d.result(d.ended))
}

// plan fits the schedule into the host's limit and fixes the end.
func (d *drain) plan(pods []*v1.Pod) {
	schedule := d.m.schedule
	if len(schedule) == 0 {
		schedule = ownGrace(pods)
	}
	d.timing = timing{
		start:    d.began,
		end:      d.began.Add(schedule.Total()),
		schedule: schedule,
		plan:     d.m.planOptions(),
	}
	if d.limited {
		var margin time.Duration
		d.timing.schedule, margin = schedule.fitInto(d.limit, d.m.opts.ReleaseMargin)
		d.timing.end = d.began.Add(d.limit - margin)
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

// prepare waits, for a bounded time, until the node's state is published.
func (d *drain) prepare(pods []*v1.Pod) {
	if d.m.opts.Reporter == nil {
		return
	}
	if d.await(d.said.settled, d.began.Add(d.publishTime(pods))) {
		d.note(d.said.err)
		return
	}
	d.note(fmt.Errorf("failed to publish the node state: %w", errTimeSpent))
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
	schedule := d.timing.schedule
	var kills []*kill
	for _, pod := range d.m.opts.Pods() {
		if pod == nil {
			continue
		}
		priority := d.timing.plan.Priority(pod)
		if schedule.Index(priority) > i || d.find(podKey(pod)) != nil {
			continue
		}
		kills = append(kills, d.add(newKill(pod, priority, schedule[i], s, now)))
	}
	return kills
}

// find gives what was asked for a pod; nil: nothing was.
func (d *drain) find(key types.UID) *kill {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[key]
}

func (d *drain) add(k *kill) *kill {
	d.order = append(d.order, k)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[podKey(k.pod)] = k
	return k
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
// then it reports and lets the host go on.
func (d *drain) finish() {
	_, flush := d.timing.plan.reserves(time.Until(d.timing.end))
	for _, b := range d.batches {
		d.await(b.done, d.timing.end.Add(-flush))
	}
	d.flush(d.order, d.timing.end)
	d.ended = time.Now()
	d.m.setReport(d.result(d.ended))
	d.m.opts.Metrics.Times(d.began, d.ended)
	d.note(d.m.lock.release(d.epoch))
}

// retired tells whether the shutdown was cancelled or overtaken. The end of Run
// is neither.
func (d *drain) retired() bool {
	cause := context.Cause(d.stopped)
	return errors.Is(cause, errCancelled) || errors.Is(cause, errOvertaken)
}
