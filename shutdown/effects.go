package shutdown

import (
	"context"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

// emptyTime is how long an empty list of pods is asked for again: it may be one that is not filled yet.
const emptyTime = time.Minute

// effects carries out what [states] decides: on the host, the drains, the node's state and the record.
// Only the event loop uses it, and nothing in it waits.
type effects struct {
	*ledger

	ctx       context.Context // of Run
	host      *host.Host      // nil: no host is watched
	events    *nodeEvents
	calls     *call.Group // the calls of the embedder's code
	drains    sync.WaitGroup
	admission *admissionState
	local     *terminations
	post      func(message) bool

	timer   *time.Timer        // fires at the end of a shutdown's time
	cleared bool               // a node state was published, or is on its way
	marked  bool               // restoreMarked was called
	leave   func() *call.Group // ends the sending of the outbox; nil: it has not begun
	errs    []error            // of the state files, for the next report
}

// become changes the state of the shutdown, from which admission follows.
func (e *effects) become(s state) {
	klog.FromContext(e.ctx).V(2).Info("The state of the node shutdown has changed", "from", e.admission.state().String(), "to", s.String())
	e.admission.become(s)
}

// announcementOf returns what an event announces. A deadline that is a date, as in a cloud's
// notice, would move with the wall clock, so it is tied to the monotonic clock of received. A host
// that names none goes on when the time is over that it has granted.
func (e *effects) announcementOf(event Event, byHost bool, received time.Time) announcement {
	a := announcement{host: byHost, origin: event.Origin, kind: event.Kind}
	if !event.Deadline.IsZero() {
		a.deadline = received.Add(event.Deadline.Sub(received))
	} else if byHost && e.host != nil {
		if limit, known := e.host.Granted(); known && limit < math.MaxInt64 {
			a.deadline = received.Add(limit)
		}
	}
	return a
}

// begin begins a new shutdown. before is the one that Trigger has dismissed; nil: none.
func (e *effects) begin(a announcement, received time.Time, before *nodeShutdown) *nodeShutdown {
	klog.FromContext(e.ctx).V(1).Info("Shutdown manager detected new shutdown event", "kind", a.kind, "origin", a.origin)
	s := &nodeShutdown{number: e.nextNumber(), received: received, account: newAccount(received, a.origin, e.ledger)}
	if before != nil { // the host goes all the same
		if end := before.hostEnd(); received.Before(end) && (a.deadline.IsZero() || end.Before(a.deadline)) {
			a.deadline = end
		}
	}
	s.join(a, e.end(a, received))
	for _, err := range e.errs {
		s.account.addErr(err)
	}
	e.errs = nil
	e.outbox.Suspend()
	e.events.detected()
	e.takeUp(s, draining)
	e.showTimes(s.number, received, time.Time{})
	e.startDrain(s, e.request(s.hostEnd(), received), nil)
	return s
}

// takeUp makes a shutdown the one that the host waits for, until the end of its time, and that the
// record is about.
func (e *effects) takeUp(s *nodeShutdown, to state) {
	e.cleared = true
	e.openOutbox()
	if e.host != nil {
		s.hold = e.host.Suspend()
		if to == draining {
			s.hold.Retake() // that of a dismissed shutdown may have let the host go
		}
	}
	e.become(to)
	e.recorder.setNewest(s)
	e.local.takeOver(s)
	e.holdUntilEnd(s)
}

// holdUntilEnd sets the timers that let the lock go, and tell the loop, at the end of a shutdown's time.
func (e *effects) holdUntilEnd(s *nodeShutdown) {
	end := s.end()
	if s.hold != nil {
		planned, unlock := timetable.End(e.request(time.Time{}, end))
		at := end.Add(unlock.Sub(planned)) // half of the margin
		switch hostEnd := s.hostEnd(); {
		case hostEnd.After(end):
			at = end.Add(min(at.Sub(end), hostEnd.Sub(end)/2)) // as the drain has it
		case hostEnd.After(time.Now()):
			at = hostEnd // it drains again, longer than another one leaves the host
		case !hostEnd.IsZero():
			at = end
		}
		s.hold.LetGoAt(e.ctx, at)
	}
	e.timer.Reset(time.Until(end))
}

// drainSooner begins another drain of a shutdown that has less time now.
func (e *effects) drainSooner(s *nodeShutdown, received time.Time) {
	e.drainAnew(s, e.request(s.hostEnd(), received), s.soFar().done)
}

// drainAgain begins another drain of a shutdown for which the host was let go, and which somebody
// else has announced since: the time until then is for the pods that have not ended. Without a deadline
// it is the time that the others leave.
func (e *effects) drainAgain(s *nodeShutdown, a announcement, received time.Time) {
	if end := s.hostEnd(); a.deadline.IsZero() && received.Before(end) {
		a.deadline = end
	}
	s.reopen(e.end(a, received))
	e.become(draining)
	e.local.takeOver(s)
	if s.hold != nil {
		s.hold.Retake()
	}
	e.drainAnew(s, e.request(a.deadline, received), 0)
}

// drainAnew stops the drains of a shutdown and begins another one, after the buckets that are done.
// An earlier drain may have set the end already, to have it on record before the release.
func (e *effects) drainAnew(s *nodeShutdown, request timetable.Request, done int) {
	s.eachDrain(func(d *drain.Drain) { d.Stop(errOvertaken) })
	s.account.reopen()
	steps := s.soFar().steps
	request.Prepared, request.Held, request.Published = steps[drain.Prepared], steps[drain.Held], steps[drain.Published]
	request.Done = done
	e.holdUntilEnd(s)
	e.startDrain(s, request, nil)
}

// cancel cancels a shutdown: its kills are stopped and the node's state is taken back.
func (e *effects) cancel(s *nodeShutdown) {
	klog.FromContext(e.ctx).V(1).Info("Shutdown manager detected shutdown cancellation")
	s.eachDrain(func(d *drain.Drain) { d.Cancel(errCancelled) })
	e.unended.add(s.account.cancel()...) // all that are signalled, since no further pod is
	s.account.finish(s.account.head())   // TerminateAll waits for none of them, and drains the rest
	e.recorder.save(0)
	e.events.cancelled()
	e.publishNone()
	e.outbox.Restore(s.account.spares)
	e.restoreMarked(s.account.spares)
}

// release enters the state in which the host was let go. TerminateAll joins the kills of pods that
// have not ended.
func (e *effects) release(s *nodeShutdown) {
	e.unended.add(s.account.kills.All()...)
	e.become(released)
}

// conclude ends a shutdown of a node that stays: a lock is wanted again.
func (e *effects) conclude(s *nodeShutdown) {
	if s.hold != nil {
		s.hold.End()
	}
	e.become(none)
}

// close closes the report of a former agent's shutdown, and stores it.
func (e *effects) close(s *nodeShutdown, cancelled bool) {
	if cancelled {
		s.account.cancel()
		e.events.cancelled()
	}
	e.outbox.Restore(s.account.spares)
	s.account.close()
	e.recordEnded(s)
}

// recordEnded stores a shutdown that does not drain, and shows its report.
func (e *effects) recordEnded(s *nodeShutdown) {
	s.account.end(time.Now())
	e.recorder.setNewest(s)
	e.recorder.save(0)
	e.last.set(s.number, s.account.report)
}

// letGo releases the lock of a shutdown that does not drain, because its time is over.
func (e *effects) letGo(s *nodeShutdown) {
	if hold := s.hold; hold != nil {
		e.calls.Go(func() string { return "the release of a shutdown that does not drain" }, func() {
			if err := hold.LetGo(e.ctx); err != nil {
				klog.FromContext(e.ctx).Error(err, "Failed to let the host go")
			}
		})
	}
}

// openOutbox lets the outbox send. It is called once the record was read under the lock of the
// folder, since the former agent may have paid its debts before that, or when a shutdown begins.
func (e *effects) openOutbox() {
	if e.leave == nil {
		e.leave = e.outbox.Open(e.ctx)
	}
}

// leaveOutbox ends the sending, and returns the group of the calls that may still run; nil: there
// is none, or TerminateAll sends on.
func (e *effects) leaveOutbox() *call.Group {
	if e.leave == nil {
		return nil
	}
	return e.leave()
}

// publishNone publishes that the node does not shut down.
func (e *effects) publishNone() {
	e.cleared = true
	e.outbox.Publish(NodeState{})
}

// clearNodeState publishes that the node does not shut down, once it is known, unless this agent
// has published a state before. It does so even if no shutdown is on record, because the files of
// a former agent may be lost.
func (e *effects) clearNodeState() {
	if !e.cleared && (e.admission.state() == none || e.admission.state() == dismissed) {
		e.publishNone()
		e.restoreMarked(func(*v1.Pod) bool { return true })
	}
}

// restoreMarked restores the readiness of pods that a former agent has taken out of their services
// without killing them, on record or not. It is called outside a shutdown; only the first call does
// anything. livesOn reports whether the shutdown before has not signalled a pod.
func (e *effects) restoreMarked(livesOn func(*v1.Pod) bool) {
	if _, ok := e.opts.Reporter.(ReadinessRestorer); !ok || e.marked {
		return
	}
	e.marked = true
	call.Start(e.ctx, e.calls, "Options.Pods", func(ctx context.Context) (struct{}, error) {
		pods, err := e.listPods(ctx)
		early := time.Now().Add(emptyTime)
		for ; ctx.Err() == nil && (err != nil || len(pods) == 0 && time.Now().Before(early)); pods, err = e.listPods(ctx) {
			pause(ctx, time.Second)
		}
		var marked []*v1.Pod
		for _, pod := range pods {
			if pod != nil && takenOut(pod) && !e.unended.has(pod) && livesOn(pod) {
				marked = append(marked, pod)
			}
		}
		e.outbox.RestoreMarked(marked)
		return struct{}{}, err
	})
}

// takenOut reports whether a pod's Ready condition has the reason that it gets only from a node that
// is about to end the pod.
func takenOut(pod *v1.Pod) bool {
	ready := podcondition.Get(&pod.Status, v1.PodReady)
	return ready != nil && ready.Status == v1.ConditionFalse && ready.Reason == v1.PodReasonTerminationByKubelet
}

// startDrain begins a drain of a shutdown. table is the timetable of a former agent; nil: a new one
// is made.
func (e *effects) startDrain(s *nodeShutdown, request timetable.Request, table *timetable.Table) {
	p := &passage{ledger: e.ledger, effects: e, ctx: e.ctx, calls: e.calls, shutdown: s, kind: s.account.head().Kind}
	event := Event{Kind: p.kind, Origin: s.account.head().Origin, Deadline: s.hostEnd()}
	p.drain = drain.New(e.ctx, e.drainOptions(e.calls, event, s.account.podPolicy), drain.Request{
		Number: e.nextNumber(), Account: s.account.kills, Table: request, Resumed: table, Publish: p.publish,
	}, p)
	s.addDrain(p.drain)
	e.drains.Add(1)
	go func() {
		defer e.drains.Done()
		p.run()
	}()
}
