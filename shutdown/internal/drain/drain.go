// Package drain is one passage through the timetable of a node shutdown: it lists the pods, kills
// them bucket by bucket, and waits for their ends, their volumes and their final statuses. An
// event that leaves a shutdown less time begins another drain of the same [kills.Account].
//
// The package knows neither the manager nor the shutdown. What it finds out goes to a [Listener].
// Each function of the embedder runs in a goroutine of its own, and each wait for it is bounded.
package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	// answerTime bounds the wait for a function that should return at once.
	answerTime = time.Second
	// recordTime bounds the wait of the first kill for the record of whom the drain means to kill.
	recordTime = 100 * time.Millisecond
	// lateListPause is the time between two lists while the pods of all buckets are waited for.
	lateListPause = time.Second
	// longestListTime bounds the wait for the first list of pods if the schedule depends on it.
	longestListTime = 30 * time.Second
)

// Drain is one passage. Make it with [New], call Run once.
type Drain struct {
	Request
	*hooks

	killing *killing
	picker  *kills.Picker
	lister  lister
	table   timetable.Table
	fitted  bool          // table is made from the first complete list, or is a former agent's
	unused  time.Duration // the pods' time that finished buckets have left unused
	over    chan struct{} // closed when Run has ended
}

// New returns a drain that has not begun. ctx is that of Run, or of TerminateAll.
func New(ctx context.Context, o Options, r Request, l Listener) *Drain {
	h := &hooks{Options: o, halt: halt{run: ctx}, listener: l}
	h.ctx, h.stop = context.WithCancelCause(ctx)
	d := &Drain{
		Request: r, hooks: h, killing: &killing{hooks: h}, picker: kills.NewPicker(r.Account, r.Number),
		lister: lister{hooks: h}, over: make(chan struct{}),
	}
	if r.Resumed != nil {
		d.table, d.fitted = *r.Resumed, true
		d.unused = unlimited // what buckets have left is not on record; the end of each bucket bounds it
	}
	return d
}

// Stopped returns why the kills were stopped: the cause of Stop, or of the end of ctx; nil: they
// were not.
func (d *Drain) Stopped() error { return context.Cause(d.ctx) }

// Stop stops the kills: no further pod is signalled. Pods that were signalled keep their time.
func (d *Drain) Stop(cause error) { d.end(cause, false) }

// Cancel is Stop for a host that stays: pods that were signalled are awaited without a limit, also
// beyond the time that the host would have waited.
func (d *Drain) Cancel(cause error) {
	d.end(cause, true)
}

// Run drains the node. It returns when the pods have ended and their statuses are acknowledged,
// or at the end of the timetable, or soon after Stop. ended is false if a pod that was signalled
// may still run then; AwaitStragglers waits for it.
func (d *Drain) Run() (ended bool) {
	defer close(d.over)
	logger := klog.FromContext(d.run)
	logger.V(1).Info("Shutdown manager processing shutdown event", "drain", d.Number)
	d.killing.published = d.Publish()
	if !d.Table.Prepared {
		d.before(Prepared, "Prepare", d.Prepare, time.Now().Add(plan.NewBudget(nil, d.Table.Options).Prepare))
	}
	onRecord := d.makeTimetable()
	if !d.Table.Held && d.Resumed == nil {
		d.before(Held, "Hold", d.Hold, d.table.HoldEnd())
	}
	d.awaitPublished()
	d.wait(d.table.NotBefore()) // a drain that begins late
	d.awaitRecord(onRecord)
	d.killing.until = times.Later(d.table.H(), time.Now().Add(answerTime))
	d.killing.life, d.killing.end = d.untilHostGoesOn(d.killing.until)
	for i := d.Table.Done; i < len(d.table.Schedule()) && !d.halted(); i++ {
		d.listener.Begins(i)
		if d.bucket(i); !d.halted() { // an interrupted bucket is left to the next drain
			d.listener.Ends(i)
		}
	}
	ended = d.awaitAll()
	d.awaitStatuses()
	return ended
}

// before calls a function of the embedder that comes before the first kill, and waits for it until a
// time. One that the end of the drain has cut short is no failure.
func (d *Drain) before(step Step, name string, f func(context.Context) error, until time.Time) {
	if f == nil || d.halted() {
		return
	}
	if time.Now().Before(until) {
		if err := d.callUntil(d.ctx, until, "Options."+name, f); err != nil && !d.halted() {
			d.listener.Fail(fmt.Errorf("failed to %s the shutdown: %w", strings.ToLower(name), err))
		}
	}
	if !d.halted() {
		d.listener.Passed(step)
	}
}

// makeTimetable makes the timetable, from the first list of pods if it comes in time.
func (d *Drain) makeTimetable() (onRecord *call.Future[struct{}]) {
	listTime := answerTime
	if len(d.Table.Schedule) == 0 && d.Resumed == nil {
		listTime = longestListTime
	}
	asked := time.Now()
	pods, complete := d.list(asked.Add(listTime))
	switch fitted := d.table.Schedule(); {
	case d.Resumed != nil && len(d.Table.Schedule) != len(fitted):
		d.Table.Schedule = fitted // it was made of the pods, or has another configuration
	case len(d.Table.Schedule) == 0:
		d.Table.Schedule = ScheduleOf(pods)
		d.Table.Schedule[0].Seconds += times.WholeSeconds(time.Since(asked) + time.Second - 2*times.Lag) // a slow list costs the pods nothing
	}
	d.Table.Done = min(d.Table.Done, max(len(d.Table.Schedule)-1, 0)) // the last bucket is for late pods
	if d.Resumed == nil {
		d.Table.Late = d.lateStart()
		d.fit(complete)
	} else if complete && d.cutsShort() {
		d.Table.Received, d.unused = time.Now(), 0
		d.Table.HostEnd, d.Table.Until = d.table.H().Add(d.table.Budget().Margin), d.table.H()
		d.Table.Prepared, d.Table.Held = true, true
		d.fit(complete)
	}
	table := d.table
	d.onPlan(func() plan.Plan { return table.Plan(pods, d.Plan) })
	return d.listener.Planned(d.table)
}

// fit makes the timetable for those who are to be killed. Until there is a complete list of them
// the seconds of the schedule count.
func (d *Drain) fit(complete bool) {
	request := d.Table
	if complete {
		request.Needs = needs(request.Schedule, request.Done, d.picker.Due())
	}
	d.table, d.fitted = timetable.New(request), complete
}

// cutsShort reports whether the timetable of a former agent leaves pods less than they need: time
// has passed since in which nobody has killed them.
func (d *Drain) cutsShort() bool {
	start := time.Now()
	for i, need := range needs(d.Table.Schedule, d.Table.Done, d.picker.Due()) {
		window := d.table.Window(i, start, unlimited)
		if need > times.WholeSeconds(window.Grace(window.Ready)) {
			return true
		}
		start = times.Later(start, window.End)
	}
	return false
}

// list asks for the pods until a time and enters them into the account. It returns the last
// complete list if there is no newer one.
func (d *Drain) list(until time.Time) (pods []*v1.Pod, complete bool) {
	pods, complete = d.lister.list(d.ctx, until)
	if complete {
		d.picker.AddListed(pods, d.killing.priorities)
	}
	return pods, complete
}

// awaitPublished waits until the node state is published, for the time that the timetable has for
// it.
func (d *Drain) awaitPublished() {
	published := d.killing.published
	if published == nil || d.Table.Published {
		return
	}
	until := times.Earlier(d.table.PublishEnd(), published.StartedAt.Add(d.table.Budget().Publish))
	if !time.Now().Before(until) {
		return
	}
	err := published.Await(d.ctx, until)
	if d.halted() {
		return // a drain that overtakes this one waits for the rest
	}
	if err != nil {
		d.listener.Fail(err)
	}
	d.listener.Passed(Published)
}

// awaitRecord waits until whom the drain means to kill is on record. A slow disk costs the pods no
// more than recordTime.
func (d *Drain) awaitRecord(onRecord *call.Future[struct{}]) {
	if d.halted() {
		return
	}
	if _, err := onRecord.Await(d.ctx, time.Now().Add(recordTime)); errors.Is(err, call.ErrTimeSpent) {
		d.listener.Fail(fmt.Errorf("failed to store in time whom the shutdown kills, the first kill does not wait for the disk: %w", err))
	}
}

// awaitStatuses waits for all final statuses, those of earlier drains included, as long as the API
// server answers and the host waits. A drain that another one has overtaken leaves them to that.
func (d *Drain) awaitStatuses() {
	if d.halted() && d.run.Err() == nil && !d.stays.Load() {
		return
	}
	var reserve time.Duration
	for _, r := range d.table.Budget().Reserves {
		reserve = max(reserve, r.Statuses)
	}
	if d.Outbox.AwaitAll(d.run, d.table.H(), reserve) {
		return
	}
	err := d.Outbox.Failure()
	if err == nil {
		err = call.ErrTimeSpent
	}
	d.listener.Fail(fmt.Errorf("failed to flush the final statuses of %d pods: %w", d.Outbox.Unacknowledged(), err))
}

// AwaitStragglers waits for the end of Run and for pods that outlive it: without a limit until ctx of
// New ends, and then for at most hang.
func (d *Drain) AwaitStragglers(hang time.Duration) {
	<-d.over
	d.killing.awaitStragglers()
	d.killing.awaitHanging(d.table.H(), hang)
}

// AwaitHanging waits for the end of Run and for pods that outlive it, for at most hang: those whose
// killer ignores its context.
func (d *Drain) AwaitHanging(hang time.Duration) {
	<-d.over
	d.killing.awaitHanging(d.table.H(), hang)
}
