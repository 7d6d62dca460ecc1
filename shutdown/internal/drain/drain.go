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
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	// answerTime bounds the wait for a function that should return at once.
	answerTime = time.Second
	// recordTime bounds the wait of the first kill for the record of whom the drain means to kill.
	recordTime = 100 * time.Millisecond
	// timerLag is how much later than a timer a goroutine may run that waits for the same time.
	timerLag = 100 * time.Millisecond
	// lateListPause is the time between two lists while the pods of all buckets are waited for.
	lateListPause = time.Second
	// longestListTime bounds the wait for the first list of pods if the schedule depends on it.
	longestListTime = 30 * time.Second
)

// errHostGoesOn ends the calls of the killer at the end of the drain.
var errHostGoesOn = errors.New("the host goes on")

// Request says what a drain is for. It does not change.
type Request struct {
	// Number is higher than that of every earlier drain of the manager.
	Number uint64
	// Account is that of the shutdown.
	Account *kills.Account
	// Table has the schedule, the times of the event, and what earlier drains have done. Its
	// schedule may be empty: then the pods' grace periods make one. Late and Needs are set here.
	Table timetable.Request
	// Resumed is the timetable of a former agent; nil: a new one is made.
	Resumed *timetable.Table
	// Publish begins the publication of the node state, and returns that of an earlier drain of the
	// shutdown if there is one; nil: there is nothing to wait for. It may ask the embedder, bounded.
	Publish func() *outbox.Publication
}

// Listener hears what a drain does. The methods return at once.
type Listener interface {
	// Planned is called when the timetable stands and the account has everyone whom the drain means
	// to kill. The future completes when both are on record.
	Planned(timetable.Table) *call.Future[struct{}]
	// Passed is called when a step before the first bucket is over.
	Passed(Step)
	// Begins is called before the kills of a bucket, Ends when the bucket is done.
	Begins(bucket int)
	Ends(bucket int)
	// Signalled and Ended are called once for each pod. GaveUp is called when the drain no longer
	// waits for a pod that is not known to have ended; err is that of its last kill.
	Signalled(*kills.Kill)
	Ended(*kills.Kill)
	GaveUp(k *kills.Kill, err error)
	// Fail has a failure for the report; it logs it. It ignores nil.
	Fail(error)
}

// Step is a step of a drain before its first bucket.
type Step int

// The steps that a later drain of the same shutdown does not repeat.
const (
	Prepared Step = iota
	Held
	Published
)

// Drain is one passage. Make it with [New], call Run once.
type Drain struct {
	Request

	hooks    *hooks
	killing  *killing
	outbox   *outbox.Outbox
	listener Listener
	halt     halt
	picker   *kills.Picker
	lister   lister
	table    timetable.Table
	fitted   bool          // table is made from the first complete list, or is a former agent's
	unused   time.Duration // the pods' time that finished buckets have left unused
}

// Options are the same for all drains of a manager.
type Options struct {
	Embedder Embedder
	Plan     plan.Options
	Outbox   *outbox.Outbox
	Calls    *call.Group
}

// New returns a drain that has not begun. ctx is that of Run, or of TerminateAll.
func New(ctx context.Context, o Options, r Request, l Listener) *Drain {
	h := newHalt(ctx)
	d := &Drain{
		Request:  r,
		hooks:    &hooks{embedder: &o.Embedder, ctx: ctx, calls: o.Calls, fail: l.Fail},
		outbox:   o.Outbox,
		listener: l,
		halt:     h,
		picker:   kills.NewPicker(r.Account, r.Number),
	}
	d.lister = lister{hooks: d.hooks}
	d.killing = &killing{hooks: d.hooks, plan: o.Plan, outbox: o.Outbox, listener: l, halt: h}
	if r.Resumed != nil {
		d.table, d.fitted = *r.Resumed, true
		d.unused = unlimited // what buckets have left is not on record; the end of each bucket bounds it
	}
	return d
}

// Stopped returns why the kills were stopped: the cause of Stop, or of the end of ctx; nil: they
// were not.
func (d *Drain) Stopped() error { return context.Cause(d.halt.ctx) }

// Stop stops the kills: no further pod is signalled. Pods that were signalled keep their time.
func (d *Drain) Stop(cause error) { d.halt.stop(cause) }

// Run drains the node. It returns when the pods have ended and their statuses are acknowledged,
// or at the end of the timetable, or soon after Stop. ended is false if a pod that was signalled
// may still run then; AwaitStragglers waits for it.
func (d *Drain) Run() (ended bool) {
	logger := klog.FromContext(d.halt.run)
	logger.V(1).Info("Shutdown manager processing shutdown event", "drain", d.Number)
	d.killing.published = d.Publish()
	d.prepare()
	onRecord := d.makeTimetable()
	d.hold()
	d.awaitPublished()
	d.startLate()
	d.awaitRecord(onRecord)
	ctx, hostGoesOn := context.WithDeadlineCause(d.halt.run, later(d.table.H(), time.Now().Add(answerTime)), errHostGoesOn)
	d.killing.ctx = ctx
	context.AfterFunc(ctx, hostGoesOn)
	for i := d.Table.Done; i < len(d.table.Schedule()) && !d.halt.halted(); i++ {
		d.listener.Begins(i)
		if d.bucket(i); !d.halt.halted() { // an interrupted bucket is left to the next drain
			d.listener.Ends(i)
		}
	}
	ended = d.awaitAll()
	d.awaitStatuses()
	return ended
}

// prepare calls Options.Prepare before the first list.
func (d *Drain) prepare() {
	if d.hooks.embedder.Prepare == nil || d.Table.Prepared || d.halt.halted() {
		return
	}
	d.hooks.prepare(d.halt.ctx, time.Now().Add(plan.NewBudget(nil, d.Table.Options).Prepare))
	d.listener.Passed(Prepared)
}

// makeTimetable makes the timetable, from the first list of pods if it comes in time.
func (d *Drain) makeTimetable() (onRecord *call.Future[struct{}]) {
	listTime := answerTime
	if len(d.Table.Schedule) == 0 && d.Resumed == nil {
		listTime = longestListTime
	}
	pods, complete := d.list(time.Now().Add(listTime))
	switch fitted := d.table.Schedule(); {
	case d.Resumed != nil && len(d.Table.Schedule) != len(fitted):
		d.Table.Schedule = fitted // it was made of the pods, or has another configuration
	case len(d.Table.Schedule) == 0:
		d.Table.Schedule = ScheduleOf(pods)
	}
	d.Table.Done = min(d.Table.Done, max(len(d.Table.Schedule)-1, 0)) // the last bucket is for late pods
	if d.Resumed == nil {
		d.Table.Late = d.hooks.lateStart()
		d.fit(complete)
	} else if complete && d.cutsShort() {
		d.Table.Received, d.unused = time.Now(), 0
		d.Table.HostEnd, d.Table.Until = d.table.H().Add(d.table.Budget().Margin), d.table.H()
		d.Table.Prepared, d.Table.Held = true, true
		d.fit(complete)
	}
	table := d.table
	d.hooks.onPlan(func() plan.Plan { return table.Plan(pods, d.killing.plan) })
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
		if need > int64((window.Grace(window.Ready)+timerLag)/time.Second) {
			return true
		}
		start = later(start, window.End)
	}
	return false
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

// list asks for the pods until a time and enters them into the account. It returns the last
// complete list if there is no newer one.
func (d *Drain) list(until time.Time) (pods []*v1.Pod, complete bool) {
	pods, complete = d.lister.list(d.halt.ctx, until)
	if complete {
		d.picker.Enter(pods, d.killing.priorities)
	}
	return pods, complete
}

// hold waits for Options.Hold.
func (d *Drain) hold() {
	if d.hooks.embedder.Hold == nil || d.Table.Held || d.Resumed != nil || d.halt.halted() {
		return
	}
	d.hooks.hold(d.halt.ctx, d.table.HoldEnd())
	if !d.halt.halted() {
		d.listener.Passed(Held)
	}
}

// awaitPublished waits until the node state is published, for the time that the timetable has for
// it.
func (d *Drain) awaitPublished() {
	published := d.killing.published
	if published == nil || d.Table.Published {
		return
	}
	until := earlier(d.table.PublishEnd(), published.StartedAt.Add(d.table.Budget().Publish))
	if !time.Now().Before(until) {
		return
	}
	if err := published.Await(d.halt.ctx, until); err != nil && !d.halt.halted() {
		d.listener.Fail(err)
	}
	d.listener.Passed(Published)
}

// startLate waits for the start time of a drain that is to begin late (Options.LateStart).
func (d *Drain) startLate() {
	if start := d.table.NotBefore(); !start.IsZero() {
		d.halt.wait(start)
	}
}

// awaitRecord waits until whom the drain means to kill is on record. A slow disk costs the pods no
// more than recordTime.
func (d *Drain) awaitRecord(onRecord *call.Future[struct{}]) {
	if d.halt.halted() {
		return
	}
	if _, err := onRecord.Await(d.halt.ctx, time.Now().Add(recordTime)); errors.Is(err, call.ErrTimeSpent) {
		d.listener.Fail(fmt.Errorf("failed to store in time whom the shutdown kills, the first kill does not wait for the disk: %w", err))
	}
}

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
		klog.FromContext(d.halt.run).V(1).Info("Shutdown manager pod killing time out", "gracePeriod", d.table.Schedule()[i].Seconds, "priority", d.table.Schedule()[i].Priority)
	}
	d.unused = window.Left(killed, time.Since(killed))
	if !d.halt.halted() { // volumes stay mounted if the node goes on
		d.hooks.awaitUnmount(d.halt.run, chosen, window.UnmountsEnd(killed))
	}
	if i < len(d.table.Schedule())-1 {
		d.killing.awaitStatuses(batches, chosen, window, d.table.Budget().Reserves[i].Statuses)
	}
	d.hooks.embedder.BucketDone(time.Since(start))
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
	if !complete && !d.halt.halted() {
		kill()
		_, complete = d.list(window.End)
	}
	if complete && !d.fitted {
		d.fit(complete)
	}
	if !d.halt.halted() {
		kill()
	}
	return chosen, window, batches
}

// awaitAll waits for all pods of the drain. Until they have ended it lists the pods again and again,
// because a list may have been empty when their bucket was drained.
func (d *Drain) awaitAll() (ended bool) {
	for !d.halt.halted() && time.Now().Before(d.table.H()) {
		d.killLate()
		if d.killing.awaitAll(earlier(d.table.H(), time.Now().Add(lateListPause))) {
			return true
		}
	}
	return d.killing.awaitAll(d.table.H())
}

// killLate lists the pods once more before the release, and kills those who have not ended with
// what is left.
func (d *Drain) killLate() {
	last := len(d.table.Schedule()) - 1
	if last < 0 {
		return
	}
	_, _ = d.list(earlier(time.Now().Add(answerTime), d.table.H()))
	schedule := d.table.Schedule()
	picked := d.picker.Pick(schedule[last].Priority, func(int32) bool { return true })
	if len(picked) > 0 && !d.halt.halted() {
		d.killing.start(picked, d.table.Window(last, time.Now(), unlimited))
	}
}

// awaitStatuses waits for all final statuses, those of earlier drains included, as long as the API
// server answers and the host waits.
func (d *Drain) awaitStatuses() {
	var reserve time.Duration
	for _, r := range d.table.Budget().Reserves {
		reserve = max(reserve, r.Statuses)
	}
	if d.outbox.AwaitAll(d.halt.run, d.table.H(), reserve) {
		return
	}
	err := d.outbox.Failure()
	if err == nil {
		err = call.ErrTimeSpent
	}
	d.listener.Fail(fmt.Errorf("failed to flush the final statuses of %d pods: %w", d.outbox.Unacknowledged(), err))
}

// AwaitStragglers waits for pods that outlive the drain, without a limit until ctx of New ends,
// and then for at most hang.
func (d *Drain) AwaitStragglers(hang time.Duration) { d.killing.awaitStragglers(d.table.H(), hang) }

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
