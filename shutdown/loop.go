package shutdown

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The phases of a manager, in order.
const (
	phaseIdle int32 = iota
	phaseRunning
	phaseOver
)

// message is a task for the event loop. It runs in the loop and must not block.
type message func(*loop)

// inbox passes messages to the event loop.
type inbox struct {
	messages chan message  // only the event loop receives
	stopped  chan struct{} // closed when the loop has ended
	phase    atomic.Int32
}

// post passes a message to the loop and waits until it has run. It returns false if the loop has
// ended, or has not begun.
func (i *inbox) post(msg message) bool {
	if i.phase.Load() != phaseRunning {
		return false
	}
	heard := make(chan struct{})
	select {
	case i.messages <- func(l *loop) { defer close(heard); msg(l) }:
		<-heard
		return true
	case <-i.stopped:
		return false
	}
}

// loop is the event loop of a manager. It owns the shutdown of the node and never waits for pods,
// for the host, for a disk or for the reporter, so that it hears a cancellation at any time.
type loop struct {
	m      *Manager
	ctx    context.Context // of Run
	host   *host.Host      // nil: no host is watched
	events *nodeEvents
	calls  *call.Group    // the calls of the embedder's code
	drains sync.WaitGroup // the goroutines of the drains

	current *nodeShutdown      // the shutdown that is under way or was dismissed; nil: none is
	past    *nodeShutdown      // that of a former agent of this boot; nil: there is none, or it is closed
	timer   *time.Timer        // fires at the end of the time of current or past
	cleared bool               // a node state was published, or is on its way
	leave   func() *call.Group // ends the sending of the outbox; nil: it has not begun
	errs    []error            // of the state files, for the next report
}

// state returns the state of the shutdown.
func (l *loop) state() state { return l.m.admission.state() }

// become changes the state of the shutdown.
func (l *loop) become(s state) {
	klog.FromContext(l.ctx).V(2).Info("The state of the node shutdown has changed", "from", l.state().String(), "to", s.String())
	l.m.admission.become(s)
}

// HostEvent handles an event of the host. One without a deadline gets that which the host granted
// last.
func (l *loop) hostEvent(event Event, received time.Time) {
	if event.Cancelled {
		l.hostCancelled()
		l.clearNodeState()
		return
	}
	l.announced(l.announcementOf(event, true, received), received, false)
}

// hostPending handles the answer of Session.Pending; nil means that no shutdown is pending. If
// known is false, the host cannot tell.
func (l *loop) hostPending(pending *Event, known bool, received time.Time) {
	switch {
	case !known:
		l.hostCannotTell(received)
	case pending == nil || pending.Cancelled:
		l.hostCancelled()
	case !pending.Deadline.IsZero() && !received.Before(pending.Deadline):
		l.announcedInThePast(l.announcementOf(*pending, true, received))
	default:
		l.announced(l.announcementOf(*pending, true, received), received, true)
	}
	l.clearNodeState()
}

// triggered handles an event of Trigger.
func (l *loop) triggered(event Event, received time.Time) {
	if event.Cancelled {
		l.triggerCancelled(event.Origin)
		l.clearNodeState()
		return
	}
	l.announced(l.announcementOf(event, false, received), received, false)
}

// announcementOf returns what an event announces. A deadline that is a date, as in a cloud's
// notice, would move with the wall clock, so it is tied to the monotonic clock of received. A host
// that names none goes on when the time is over that it has granted.
func (l *loop) announcementOf(event Event, byHost bool, received time.Time) announcement {
	a := announcement{host: byHost, origin: event.Origin, kind: event.Kind}
	if !event.Deadline.IsZero() {
		a.deadline = received.Add(event.Deadline.Sub(received))
	} else if byHost && l.host != nil {
		if limit, known := l.host.Granted(); known && limit < math.MaxInt64 {
			a.deadline = received.Add(limit)
		}
	}
	return a
}

// request returns what the timetable of a drain is made for.
func (l *loop) request(hostEnd, received time.Time) timetable.Request {
	return timetable.Request{Schedule: l.m.schedule, Options: l.m.opts.Plan, Received: received, HostEnd: hostEnd}
}

// end returns when a drain for an announcement would stop waiting for pods. Whether it begins late
// is not known yet; it may if there is a deadline.
func (l *loop) end(a announcement, received time.Time) time.Time {
	request := l.request(a.deadline, received)
	request.Late = true
	if len(request.Schedule) == 0 {
		request.Schedule = plan.Schedule{{Seconds: math.MaxInt32}} // the pods make it; the timetable then says when it ends
	}
	end, _ := timetable.End(request)
	return end
}

// begin begins a new shutdown.
func (l *loop) begin(a announcement, received time.Time) {
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager detected new shutdown event", "kind", a.kind, "origin", a.origin)
	s := &nodeShutdown{number: l.m.nextNumber(), received: received, account: newAccount(received, a.origin, l.m)}
	if l.state() == dismissed { // the host goes all the same
		if end := l.current.hostEnd(); received.Before(end) && (a.deadline.IsZero() || end.Before(a.deadline)) {
			a.deadline = end
		}
	}
	s.join(a, l.end(a, received))
	for _, err := range l.errs {
		s.account.addErr(err)
	}
	l.errs = nil
	l.m.outbox.Suspend()
	l.events.detected()
	l.enter(s, draining)
	l.m.showTimes(s.number, s.account.head().Started, time.Time{})
	l.startDrain(s, l.request(s.hostEnd(), received), nil)
}

// enter makes a shutdown the current one, and has the host wait for it until the end of its time.
func (l *loop) enter(s *nodeShutdown, to state) {
	l.cleared = true
	l.openOutbox()
	l.current = s
	if l.host != nil {
		s.hold = l.host.Suspend()
	}
	l.become(to)
	l.m.recorder.setNewest(s)
	l.m.local.takeOver(&l.m.unended)
	l.holdUntilEnd()
}

// holdUntilEnd has the lock let go, and the loop told, at the end of the current shutdown's time.
func (l *loop) holdUntilEnd() {
	end := l.current.end()
	if l.current.hold != nil {
		left := timetable.Margin(l.request(time.Time{}, end))
		if hostEnd := l.current.hostEnd(); !hostEnd.IsZero() {
			left = min(left, max(hostEnd.Sub(end), 0)) // the margin as the drain has it
		}
		l.current.hold.LetGoAt(l.ctx, end.Add(left/2))
	}
	l.wakeAt(end)
}

// wakeAt has the loop told of the end of a shutdown's time.
func (l *loop) wakeAt(end time.Time) {
	l.timer.Reset(time.Until(end))
}

// drainAnew begins another drain of the current shutdown: because it has less time, or, with
// again, because the host was let go and has been announced to go once more.
func (l *loop) drainAnew(received time.Time, again bool) {
	s := l.current
	s.stopDrains(errOvertaken)
	request := l.request(s.hostEnd(), received)
	p := s.soFar()
	request.Prepared, request.Held, request.Published = p.steps[0], p.steps[1], p.steps[2]
	request.Done = p.done
	if again {
		request.Done = 0
		s.account.reopen()
		l.become(draining)
		if s.hold != nil {
			s.hold.Retake()
		}
	}
	l.holdUntilEnd()
	l.startDrain(s, request, nil)
}

// cancel cancels the current shutdown: its kills are stopped and the node's state is taken back.
func (l *loop) cancel() {
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager detected shutdown cancellation")
	s := l.current
	l.m.unended.add(s.account.cancel()...)
	s.stopDrains(errCancelled)
	l.m.recorder.save(0)
	l.events.cancelled()
	l.publishNone()
	l.m.outbox.Restore(s.account.spares)
	l.restoreMarked()
}

// conclude ends the current shutdown: the node stays.
func (l *loop) conclude() {
	s := l.current
	l.current = nil
	if s.hold != nil {
		s.hold.End()
	}
	l.become(none)
}

// dismiss cancels the current shutdown although the host has it pending: the lock is kept.
func (l *loop) dismiss() {
	l.current.dismiss()
	l.cancel()
	l.become(dismissed)
	l.wakeAt(l.current.end())
}

// letGo releases the lock of a dismissed shutdown at the end of its time.
func (l *loop) letGo() {
	if hold := l.current.hold; hold != nil {
		l.calls.Go(func() string { return "the release of a dismissed shutdown" }, func() {
			if err := hold.LetGo(l.ctx); err != nil {
				klog.FromContext(l.ctx).Error(err, "Failed to let the host go")
			}
		})
	}
}

// openOutbox lets the outbox send. It is called once the record was read under the lock of the
// folder, since the former agent may have paid its debts before that, or when a shutdown begins.
func (l *loop) openOutbox() {
	if l.leave == nil {
		l.leave = l.m.outbox.Open(l.ctx)
	}
}

// leaveOutbox ends the sending, and returns the group of the calls that may still run; nil: there
// is none, or TerminateAll sends on.
func (l *loop) leaveOutbox() *call.Group {
	if l.leave == nil {
		return nil
	}
	return l.leave()
}

// publishNone publishes that the node does not shut down.
func (l *loop) publishNone() {
	l.cleared = true
	l.m.outbox.Publish(NodeState{})
}

// clearNodeState publishes that the node does not shut down, once it is known, unless this agent
// has published a state before. It does so even if no shutdown is on record, because the files of
// a former agent may be lost.
func (l *loop) clearNodeState() {
	if !l.cleared && (l.state() == none || l.state() == dismissed) {
		l.publishNone()
		l.restoreMarked()
	}
}
