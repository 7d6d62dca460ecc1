package shutdown

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

// ledger is what a manager keeps beyond every single shutdown: the debts to the API server, the
// kills whose pods have not ended, the record and the last report.
type ledger struct {
	*settings

	outbox   *outbox.Outbox
	store    *store.Store
	recorder recorder
	unended  unended
	last     lastReport
	numbers  atomic.Uint64 // of shutdowns and of drains
	shown    atomic.Uint64 // the highest number of a shutdown whose times the metrics show
}

// newLedger returns the ledger of a manager that does not run. boot and write are the clock since
// the boot and the disk; nil: those of this machine.
func newLedger(s *settings, refused func() uint64, boot func() (id string, since time.Duration, err error), write func(string, func(io.Writer) error) error) *ledger {
	l := &ledger{settings: s}
	l.store = store.New(store.Options{Dir: s.opts.StateDir, Times: s.byPriority, Boot: boot, Write: write})
	var changed func()
	if l.stores() {
		changed = l.recorder.savePods
	}
	l.outbox = outbox.New(s.outboxOptions(changed))
	l.recorder = recorder{store: l.store, outbox: l.outbox, refused: refused}
	return l
}

// drainOptions returns the embedder's functions as a drain of a shutdown calls them. policy
// returns the pod policy when the drain has asked for it.
func (l *ledger) drainOptions(calls *call.Group, event Event, policy func() PodPolicy) drain.Options {
	e := drain.Embedder{
		Pods: l.listPods, Prepare: l.opts.Prepare, Hold: l.opts.Hold, OnPlan: l.opts.OnPlan,
		NoRetry:    func(err error) bool { return errors.Is(err, ErrNoRetry) },
		LateStart:  func() bool { return l.opts.LateStart(event) },
		BucketDone: l.opts.Metrics.Bucket,
		Marks:      l.marks(),
		Flushes:    l.flushes(),
	}
	if l.opts.Volumes != nil {
		e.AwaitUnmount = l.opts.Volumes.WaitForAllPodsUnmount
	}
	e.Kill = func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error) {
		result, err := l.opts.Killer.KillPod(ctx, pod, KillRequest{GracePeriodSeconds: &seconds, SetStatus: policy().of(pod).setStatus(podcondition.Generation(pod))})
		if err != nil {
			result, err = awaitKill(ctx, result, err)
		}
		return kills.Result(result), err
	}
	return drain.Options{Embedder: e, Plan: l.opts.Plan, Outbox: l.outbox, Calls: calls}
}

// listPods calls Options.Pods. A pod that is not in a list of the pods of the node is not waited for
// by a later shutdown, unless its kill is under way.
func (l *ledger) listPods(ctx context.Context) ([]*v1.Pod, error) {
	pods, err := l.opts.Pods(ctx)
	if err == nil && len(pods) > 0 { // an empty list may just be early
		l.unended.forget(pods)
	}
	return pods, err
}

// stores reports whether there is a folder for the record, and a boot that it can name.
func (l *ledger) stores() bool { return l.opts.StateDir != "" && l.store.BootErr() == nil }

// nextNumber returns a number that is higher than all before.
func (l *ledger) nextNumber() uint64 { return l.numbers.Add(1) }

// showTimes sets the metrics of the start and the end of a shutdown. A lower number than the
// newest one shown is ignored, as a cancelled shutdown may end last. Without the priority gate
// nothing is shown, as in the kubelet.
func (l *ledger) showTimes(number uint64, started, ended time.Time) {
	newest := l.shown.Load()
	for number > newest && !l.shown.CompareAndSwap(newest, number) {
		newest = l.shown.Load()
	}
	if number >= newest && l.byPriority {
		l.opts.Metrics.Times(started, ended)
	}
}

// podEnded counts a pod that has ended, and has its final status sent. One with PolicyLeaveAsIs
// gets none.
func (l *ledger) podEnded(k *kills.Kill, policy PodPolicy) {
	l.unended.remove(k)
	l.countKill(k, nil)
	if !l.flushes() {
		return
	}
	of := policy.of(k.Pod())
	if of == PolicyLeaveAsIs {
		k.Acknowledge()
		return
	}
	l.outbox.Owe(k.Pod(), func() *v1.Pod { return withFinalStatus(k, of) }, k.Acknowledge)
}

// podGivenUp counts a pod that is not known to have ended, unless another drain still waits for it.
func (l *ledger) podGivenUp(k *kills.Kill, err error) {
	if k.UnderWay() {
		return
	}
	if staticpod.IsOrMirrors(k.Pod()) {
		l.unended.remove(k)
	}
	l.countKill(k, err)
}

// countKill counts a pod once: with the outcome that the killer named, or else Failed or Ended.
func (l *ledger) countKill(k *kills.Kill, err error) {
	if !k.Count() {
		return
	}
	outcome := "Ended"
	if err != nil {
		outcome = "Failed"
	}
	l.opts.Metrics.PodKilled(cmp.Or(k.State().Result.Outcome, outcome))
}

// load sets the ledger to what is on record: the debts of a former agent, its report, the
// metrics. It returns the shutdown of this boot that is on record; nil if there is none, the record
// has only debts, or the host has cancelled it.
func (l *ledger) load(c store.Contents) (past *nodeShutdown) {
	l.outbox.Load(func(yield func(outbox.Kind, *v1.Pod) bool) {
		for _, debt := range l.owedNow(c) {
			kind := outbox.KindStatus
			if debt.Kind == store.DebtReady {
				kind = outbox.KindMark
			}
			if !yield(kind, debt.Pod) {
				return
			}
		}
	})
	r := c.Record
	if r == nil {
		return nil
	}
	if r.BootID == l.store.BootID() && r.Report.Cancelled && r.Report.Ended.IsZero() {
		r.Report.Ended = time.Now() // its agent died before it could say so
	}
	l.recorder.setFormer(r)
	if r.Report.Started.IsZero() || r.BootID != l.store.BootID() || r.Report.Cancelled && !r.Dismissed {
		return nil // it has debts alone, or its shutdown is over
	}
	return l.restored(r)
}

// show sets the metrics and the last report to what is on record.
func (l *ledger) show(c store.Contents) {
	times := c.Times
	if r := c.Record; r != nil {
		if !r.Report.Started.IsZero() { // newer than the kubelet's file, which is written beside it
			times = store.Times{StartTime: r.Report.Started, EndTime: r.Report.Ended}
			l.last.set(0, func() Report { return l.formerReport(r) })
		}
	}
	if times != (store.Times{}) {
		l.showTimes(0, times.StartTime, times.EndTime)
	}
}

// restoreMarks has the marks of a cancelled shutdown restored that its agent has left; r may be nil.
func (l *ledger) restoreMarks(r *store.Record) {
	if r != nil && r.BootID == l.store.BootID() && r.Report.Cancelled {
		l.outbox.Restore(l.restored(r).account.spares)
	}
}

// formerReport returns the report of a former agent, with what was acknowledged since.
func (l *ledger) formerReport(r *store.Record) Report {
	debts, _ := l.outbox.Debts()
	former := r.Report
	former.Pods = nil
	for p := range formerPods(r, l.store.BootID(), debts) {
		former.Pods = append(former.Pods, *p)
	}
	return reportOf(former)
}

// owedNow returns the debts that a former agent has left, those for pods that had just ended
// included. Everything has ended with another boot, so there whom a shutdown has killed is owed the
// final status, seen to end or not; but static pods run again.
func (l *ledger) owedNow(c store.Contents) []store.Debt {
	if c.Record == nil {
		return c.Debts
	}
	owed := slices.Clone(c.Debts)
	over := c.Record.BootID != l.store.BootID() && l.store.BootErr() == nil
	for _, p := range c.Record.Report.Pods {
		if p.End != nil && (!p.Ended.IsZero() || over && !c.Record.Report.Cancelled) {
			owed = append(owed, store.Debt{Kind: store.DebtStatus, Pod: p.End})
		}
	}
	return slices.DeleteFunc(owed, func(d store.Debt) bool {
		return over && (d.Kind != store.DebtStatus || staticpod.IsOrMirrors(d.Pod))
	})
}

// restored returns the shutdown of a record of this boot, for the agent that takes it up.
func (l *ledger) restored(r *store.Record) *nodeShutdown {
	clock := l.store
	s := &nodeShutdown{number: l.nextNumber(), received: clock.TimeOf(r.T0), h: clock.TimeOf(r.H), dismissed: r.Dismissed}
	s.account = newAccount(s.received, "", l)
	s.account.setPolicy(PodPolicy(r.Policy))
	for _, a := range r.Announcements {
		restored := announcement{host: a.Host, origin: a.Origin, kind: Kind(a.Kind)}
		if a.Deadline != 0 {
			restored.deadline = clock.TimeOf(a.Deadline)
		}
		s.standing = append(s.standing, restored)
	}
	s.progress.steps[drain.Prepared], s.progress.steps[drain.Held], s.progress.steps[drain.Published] = r.Prepared, r.Held, r.Published
	var stored timetable.Stored
	if r.Timetable != nil && json.Unmarshal(r.Timetable, &stored) == nil && stored.Check() == nil {
		table := timetable.Resume(stored, clock.TimeOf, l.opts.Plan)
		s.progress.table = &table
		s.progress.begun, s.progress.done = min(r.Begun, len(table.Schedule())), min(r.Done, len(table.Schedule()))
	}
	s.account.restore(r, s.received, true)
	s.account.end(r.Report.Ended)
	if r.Report.Cancelled {
		s.account.cancel()
	}
	return s
}

// owes reports whether the API server must still be told of the end of a pod. For a static pod it
// withdraws the final status first.
func (l *ledger) owes(pod *v1.Pod) bool {
	if pod == nil || !l.outbox.Owes(pod) {
		return false
	}
	l.outbox.Withdraw(pod)
	return l.outbox.Owes(pod)
}
