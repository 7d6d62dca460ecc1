package shutdown

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// loadRecord sets the manager to what is on record: the debts of a former agent, its report, the
// metrics. It returns the shutdown of this boot that is on record; nil if there is none, or if the
// host has cancelled it.
func (m *Manager) loadRecord(c store.Contents) (past *nodeShutdown) {
	m.outbox.Load(func(yield func(outbox.Kind, *v1.Pod) bool) {
		for _, debt := range m.owedNow(c) {
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
	if r.BootID == m.store.BootID() && r.Report.Cancelled && r.Report.Ended.IsZero() {
		r.Report.Ended = time.Now() // its agent died before it could say so
	}
	m.recorder.setFormer(r)
	if r.Report.Started.IsZero() || r.BootID != m.store.BootID() || r.Report.Cancelled && !r.Dismissed {
		return nil // it has debts alone, or its shutdown is over
	}
	return m.restoredShutdown(r)
}

// showRecord sets the metrics and the last report to what is on record.
func (m *Manager) showRecord(c store.Contents) {
	times := c.Times
	if r := c.Record; r != nil {
		m.admission.refused.Add(r.Refused)
		m.opts.Metrics.PodsRefused(r.Refused)
		if !r.Report.Started.IsZero() { // newer than the kubelet's file, which is written beside it
			times = store.Times{StartTime: r.Report.Started, EndTime: r.Report.Ended}
			m.last.set(0, func() Report { return m.formerReport(r) })
		}
	}
	if times != (store.Times{}) {
		m.showTimes(0, times.StartTime, times.EndTime)
	}
}

// formerReport returns the report of a former agent, with what was acknowledged since.
func (m *Manager) formerReport(r *store.Record) Report {
	debts, _ := m.outbox.Debts()
	former := r.Report
	former.Pods = nil
	for p := range formerPods(r, m.store.BootID(), debts) {
		former.Pods = append(former.Pods, *p)
	}
	return reportOf(former)
}

// owedNow returns the debts that a former agent has left. Everything has ended with another boot,
// so there whom a shutdown has killed is owed the final status, seen to end or not; but static
// pods run again.
func (m *Manager) owedNow(c store.Contents) []store.Debt {
	if c.Record == nil || c.Record.BootID == m.store.BootID() || m.store.BootErr() != nil {
		return c.Debts
	}
	var owed []store.Debt
	for _, debt := range c.Debts {
		if debt.Kind == store.DebtStatus && !staticpod.IsOrMirrors(debt.Pod) {
			owed = append(owed, debt)
		}
	}
	if c.Record.Report.Cancelled {
		return owed
	}
	for _, p := range c.Record.Report.Pods {
		if p.Ended.IsZero() && p.End != nil && !staticpod.IsOrMirrors(p.End) {
			owed = append(owed, store.Debt{Kind: store.DebtStatus, Pod: p.End})
		}
	}
	return owed
}

// readRecord is what the loop learns of the state folder.
type readRecord struct {
	contents store.Contents
	errs     []error // of the folder
}

// startReading locks the state folder and reads the files, in a goroutine.
func (l *loop) startReading() *call.Future[readRecord] {
	return call.Start(l.ctx, l.calls, "the reading of the shutdown state", func(ctx context.Context) (readRecord, error) {
		var r readRecord
		if err := l.m.store.BootErr(); err != nil && l.m.opts.StateDir != "" {
			r.errs = append(r.errs, err)
		}
		waiting, enough := context.WithTimeout(ctx, folderTime)
		defer enough()
		warning, err := l.m.store.Lock(waiting)
		for _, err := range []error{warning, err} {
			if err != nil {
				r.errs = append(r.errs, err)
			}
		}
		if err == nil {
			r.contents = l.m.store.Read(ctx, l.calls, time.Now().Add(readTime))
		}
		return r, err
	})
}

// folderRead handles the end of startReading.
func (l *loop) folderRead(r readRecord, had bool) {
	l.errs = append(l.errs, append(r.errs, r.contents.Errs...)...)
	for _, err := range l.errs {
		klog.FromContext(l.ctx).Error(err, "Shutdown state is not as it should be")
	}
	unended := false // a cancelled shutdown has its end from loadRecord
	if !had {
		l.m.recorder.setOpen(l.ctx, false)
	} else {
		former := r.contents.Record
		unended = former != nil && former.Report.Cancelled && former.Report.Ended.IsZero()
		decided := l.m.past
		if l.past != nil {
			decided = nil
		}
		l.past = l.m.loadRecord(r.contents)
		l.m.showRecord(r.contents)
		if decided != nil && l.past != nil && l.past.received.Equal(decided.received) {
			// The host was faster than the disk. What the former agent has written meanwhile counts.
			l.past = nil
			decided.account.restore(r.contents.Record, decided.received, false)
			l.m.recorder.save(0)
			l.openOutbox()
			return
		}
	}
	l.openOutbox()
	if unended {
		l.m.recorder.save(0)
	}
	switch {
	case l.state() == draining || l.state() == released:
		l.mergePast(r.contents.Record)
	case !had && l.past != nil && l.past.live():
		// Another agent drains this node. Its record counts until its time is over.
		l.timer.Reset(time.Until(l.past.end()))
		l.become(unsettled)
	case l.past == nil:
		l.become(none)
	default:
		l.settleRecord()
	}
}

// settleRecord sets the state to what the record says, until the host says more.
func (l *loop) settleRecord() {
	switch s := l.past; {
	case s.wasDismissed():
		l.dismissAgain()
	case !s.live() && l.host == nil:
		l.become(none)
		l.closePast()
	case !s.live():
		l.become(none)
		s.account.end(time.Now()) // its pods are another matter: the host may still go down
		l.m.recorder.setNewest(s)
		l.m.recorder.save(0)
		l.m.last.set(s.number, s.account.report)
	default:
		l.become(unsettled)
		l.wakeAt(s.end())
		if l.host == nil {
			l.resume(nil, time.Now())
		}
	}
}

// resume goes on with the shutdown of a former agent. a is its announcement by the host; nil if
// nobody has said anything.
func (l *loop) resume(a *announcement, received time.Time) {
	s := l.past
	l.past = nil
	sooner := false
	if a != nil {
		_, sooner = s.join(*a, l.end(*a, received))
	}
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager goes on with the shutdown of a former agent", "began", s.received)
	l.events.detected()
	l.enter(s, draining)
	s.account.reopen()
	l.m.showTimes(s.number, s.account.head().Started, time.Time{})
	p := s.soFar()
	request := l.request(s.hostEnd(), s.received)
	request.Prepared, request.Held, request.Published, request.Done = false, p.steps[1], p.steps[2], p.done
	table := p.table
	if sooner || table == nil {
		request.Received, request.Until, table = received, s.end(), nil
	}
	l.startDrain(s, request, table)
}

// takeUpPast has the shutdown of a former agent, whose time is over, as one for which the host was
// let go.
func (l *loop) takeUpPast(a announcement) {
	s := l.past
	l.past = nil
	s.join(a, l.end(a, time.Now()))
	s.account.end(time.Now())
	l.m.outbox.Publish(s.nodeState()) // while the host was not reached the node was published as staying
	l.enter(s, released)
	l.m.recorder.save(0)
	l.m.last.set(s.number, s.account.report)
}

// mergePast adds what a former agent has on record to a shutdown that has begun before the record
// could be read.
func (l *loop) mergePast(r *store.Record) {
	s := l.past
	l.past = nil
	if s != nil && s.live() {
		l.current.account.restore(r, s.received, !s.received.Equal(l.current.received))
	}
	l.m.recorder.save(0)
}

// takeBackPast takes back what the host has announced of the shutdown of a former agent. The host
// does not speak for others: if Trigger has announced the shutdown too, it goes on.
func (l *loop) takeBackPast() {
	if l.past != nil && l.past.live() {
		if _, left := l.past.takeBack(byHost); left {
			l.resume(nil, time.Now())
			return
		}
	}
	l.dropPast(true)
}

// dropPast ends the shutdown of a former agent: the host has cancelled it, or its time is over.
func (l *loop) dropPast(cancelled bool) {
	s := l.past
	l.become(none)
	if s == nil {
		return
	}
	if cancelled {
		l.events.cancelled()
	}
	l.closeAs(cancelled)
	l.clearNodeState()
}

// closePast closes the report of a former agent's shutdown that does not go on.
func (l *loop) closePast() {
	if l.past != nil {
		l.closeAs(false)
	}
}

func (l *loop) closeAs(cancelled bool) {
	s := l.past
	l.past = nil
	if cancelled {
		s.account.cancel()
	}
	s.account.close()
	l.m.recorder.setNewest(s)
	l.m.recorder.save(0)
	l.m.last.set(s.number, s.account.report)
}

// dismissAgain takes up a shutdown that Trigger has dismissed before a restart.
func (l *loop) dismissAgain() {
	s := l.past
	l.past = nil
	l.enter(s, dismissed)
	l.m.last.set(s.number, s.account.report)
	l.cleared = false // the former agent may have died before it could say that the node stays
	l.clearNodeState()
}

// pastMayBe reports whether the shutdown of a former agent may be one of a kind.
func (l *loop) pastMayBe(kind Kind) bool { return l.past != nil && l.past.fits(kind) }

// dismissPast has Trigger's cancellation count for the shutdown of a former agent, which the host
// may have pending.
func (l *loop) dismissPast() {
	s := l.past
	l.past = nil
	if s == nil {
		return
	}
	s.dismiss()
	s.account.cancel()
	s.account.end(time.Now())
	l.events.cancelled()
	l.enter(s, dismissed)
	l.publishNone()
	l.m.recorder.save(0)
	l.m.last.set(s.number, s.account.report)
}

// restoreMarked restores the readiness of pods that a former agent has taken out of their services
// without killing them. It is called when a shutdown was cancelled, and outside of one.
func (l *loop) restoreMarked() {
	if _, ok := l.m.opts.Reporter.(ReadinessRestorer); !ok {
		return
	}
	call.Start(l.ctx, l.calls, "Options.Pods", func(ctx context.Context) (struct{}, error) {
		pods, err := l.m.opts.Pods(ctx)
		for ; err != nil && ctx.Err() == nil; pods, err = l.m.opts.Pods(ctx) {
			pause(ctx, time.Second)
		}
		var marked []*v1.Pod
		for _, pod := range pods {
			if pod != nil && takenOut(pod) && !l.m.unended.has(pod) {
				marked = append(marked, pod)
			}
		}
		l.m.outbox.RestoreMarked(marked)
		return struct{}{}, err
	})
}

// takenOut reports whether the Ready condition of a pod has the reason that only a node's end of
// the pod gives it.
func takenOut(pod *v1.Pod) bool {
	ready := podcondition.Get(&pod.Status, v1.PodReady)
	return ready != nil && ready.Status == v1.ConditionFalse && ready.Reason == v1.PodReasonTerminationByKubelet
}

const (
	// folderTime bounds the wait for another agent to unlock the state folder, and readTime that for
	// the files.
	folderTime = 10 * time.Second
	readTime   = 5 * time.Second
)
