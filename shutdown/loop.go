package shutdown

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// message is a task for the event loop. It runs in the loop and must not block.
type message func(*loop)

// loop is the event loop of a manager. It owns the state of the shutdown. It never waits for
// pods, for the host or for the reporter, so that it hears a cancellation at any time.
type loop struct {
	m         *Manager
	ctx       context.Context // of Run
	keeper    *keeper         // nil: no host is watched
	announcer *announcer
	queue     *sharedQueue
	calls     *call.Group    // the calls of the embedder's code
	drains    sync.WaitGroup // the goroutines of the drains

	current        *drain       // the drain of the shutdown that is under way; nil: none is
	earlier        []*drain     // cancelled or overtaken drains whose pods may still end, the latest first
	unacknowledged []*drain     // drains whose final statuses are not all acknowledged, the oldest first
	published      *publication // the node state of the shutdown that is under way; nil: not yet published
	announced      bool         // the host has announced the shutdown
	triggered      bool         // Trigger has begun it
	heardSession   uint64       // the session that has sent the last event
	numbers        uint64       // the number of shutdowns so far

	stateRead bool     // readState has run
	deferred  []func() // is run after readState, in order

	unfinished    *progress   // the shutdown of a previous agent; nil: none, or it was resumed
	concluded     *progress   // one that its agent finished, perhaps without the release of the lock; nil: none
	expiry        *time.Timer // fires when the time of unfinished is over
	nodeStateSent bool        // this agent has published a node state, or begun to
	stateErrs     []error     // of the state files, for the next report
}

// deferUntilStateRead postpones do until readState has run, and returns false if it has.
// Admission follows a postponed event at once; a nil event changes nothing.
func (l *loop) deferUntilStateRead(event *Event, do func()) bool {
	if l.stateRead {
		return false
	}
	if event != nil {
		l.m.admission.shuttingDown.Store(!event.Cancelled)
	}
	l.deferred = append(l.deferred, do)
	return true
}

// hostEvent handles an event of the host. session is the number of the session that sent it.
func (l *loop) hostEvent(event Event, session uint64, received time.Time) {
	if l.deferUntilStateRead(&event, func() { l.hostEvent(event, session, received) }) {
		return
	}
	l.heardSession = session
	if event.Cancelled {
		l.hostCancelled()
		return
	}
	l.hostShutsDown(event, received)
}

// pendingFound handles the answer of Session.Pending; nil means that no shutdown is pending. If
// the session has sent an event, the event is newer than the answer, which is dropped then. If
// known is false, the host cannot tell.
func (l *loop) pendingFound(pending *Event, known bool, session uint64, received time.Time) {
	if l.deferUntilStateRead(pending, func() { l.pendingFound(pending, known, session, received) }) {
		return
	}
	l.reopen(pending)
	switch {
	case l.heardSession == session:
	case !known:
		l.hostCannotTell(received)
	case pending != nil && !pending.Cancelled:
		if p := l.unfinished; p != nil && !p.mayBe(pending.Kind) {
			l.unfinished = nil // the record is of another shutdown; admission stays refused
			l.closeReport(p, false)
		}
		l.hostShutsDown(*pending, received)
	default:
		l.hostCancelled()
	}
	l.clearNodeState()
}

// hostShutsDown handles the shutdown of the host. If the event has no deadline, the host waits as
// long as it granted; math.MaxInt64 stands for no limit.
func (l *loop) hostShutsDown(event Event, received time.Time) {
	l.announced = true
	if limit, known := l.m.lock.grantedDelay(); known && limit < math.MaxInt64 && event.Deadline.IsZero() {
		event.Deadline = received.Add(limit)
	}
	l.beginShutdown(event, received)
}

// hostCancelled handles the cancellation by the host. A shutdown that Trigger has begun too goes
// on.
func (l *loop) hostCancelled() {
	l.m.admission.refusedUntil.Store(nil) // also if another agent has the state folder
	l.dropUnfinished(true)
	l.announced = false
	if !l.triggered {
		l.cancel()
	}
}

// trigger handles an event of Trigger. A cancellation also cancels the shutdown of the host.
func (l *loop) trigger(event Event) {
	received := time.Now()
	if event.Cancelled {
		l.m.admission.refusedUntil.Store(nil)
	}
	if l.deferUntilStateRead(&event, func() { l.triggerAt(event, received) }) {
		return
	}
	l.triggerAt(event, received)
}

// triggerAt handles an event that Trigger received at a time.
func (l *loop) triggerAt(event Event, received time.Time) {
	l.triggered = !event.Cancelled
	if event.Cancelled {
		l.dropUnfinished(true)
		l.announced = false
		l.cancel()
		return
	}
	l.beginShutdown(event, received)
}

// beginShutdown refuses admission and starts a drain. A shutdown that is under way goes on unless
// the event leaves it less time. Then a new drain overtakes it, and kills that still run join the
// new drain.
func (l *loop) beginShutdown(event Event, received time.Time) {
	event = withSteadyDeadline(event, received)
	if l.current != nil && !l.current.outlasts(event, received) {
		return
	}
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager detected new shutdown event", "kind", event.Kind, "origin", event.Origin)
	l.m.admission.shuttingDown.Store(true)
	l.nodeStateSent = true
	request := l.request(event, received)
	if l.current == nil {
		l.published = nil
		l.announcer.recordDetected()
		l.queue.DropRestores()
	} else {
		request.overtakes = true
		l.stopCurrent(errOvertaken)
	}
	for _, local := range l.earlier {
		if local.local {
			local.halt.stop(errTakenOver)
		}
	}
	d := l.newDrain(request)
	l.current = d
	l.drains.Go(func() {
		d.run()
		l.m.inbox.post(func(l *loop) { l.removeEnded(d) })
	})
}

// publish publishes the node state of a drain. It returns the publication of an earlier drain of
// the same shutdown if there is one, and nil if the drain is not the current one any more.
func (l *loop) publish(d *drain, state NodeState) *publication {
	if l.current != d {
		return nil
	}
	if l.published == nil {
		l.published = l.announcer.publish(state)
	}
	return l.published
}

// request describes the next drain: of a new shutdown, or of that of a previous agent.
func (l *loop) request(event Event, received time.Time) drainRequest {
	l.numbers++
	request := drainRequest{
		event: event, number: l.numbers, received: received, started: received, announced: l.announced,
		epoch: l.m.lock.suspend(), unlockAt: l.m.host.unlockAt(event, received),
	}
	if l.unfinished != nil {
		request.resume(l.unfinished)
		request.unlockAt = l.m.state.ledger.timeOf(l.unfinished.HostEnd).Add(l.m.host.margin() / 2)
		l.unfinished = nil
	}
	return request
}

// newDrain makes the next drain. It schedules the release of the lock for the end of the host's
// time, in case the drain does not get as far as its timetable.
func (l *loop) newDrain(request drainRequest) *drain {
	d := l.m.newDrain(l.ctx, request, l.calls)
	d.statuses.queue = l.queue.Queue
	d.killing.earlier = l.rosters()
	for _, err := range l.stateErrs {
		d.record.addErr(err)
	}
	l.stateErrs = nil
	l.dropAcknowledged()
	for _, before := range l.unacknowledged {
		d.record.recordsBefore = append(d.record.recordsBefore, before.record)
	}
	l.unacknowledged = append(l.unacknowledged, d)
	d.record.ledger.newest.Store(d.record)
	l.m.lock.releaseAt(l.ctx, request.epoch, request.unlockAt)
	return d
}

// rosters returns the rosters of the drains whose pods may still end, the latest first.
func (l *loop) rosters() []*kills.Roster {
	rosters := make([]*kills.Roster, len(l.earlier))
	for i, d := range l.earlier {
		rosters[i] = d.killing.roster
	}
	return rosters
}

// cancel stops the drain, admits pods again and has a new lock taken.
func (l *loop) cancel() {
	if l.current == nil {
		return
	}
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager detected shutdown cancellation")
	called := l.current
	l.stopCurrent(errCancelled)
	called.record.storeCancelled()
	l.m.lock.renew()
	l.m.admission.shuttingDown.Store(false)
	l.announcer.announceCancelled()
	if l.keeper != nil {
		l.keeper.wakeUp()
	}
}

// stopCurrent stops the kills of the current drain. It keeps the drain in earlier if its pods may
// still end.
func (l *loop) stopCurrent(cause error) {
	l.current.halt.stop(cause)
	select {
	case <-l.current.done.Done():
	default:
		l.earlier = slices.Insert(l.earlier, 0, l.current)
	}
	l.current = nil
}

// removeEnded removes a drain whose pods have all ended.
func (l *loop) removeEnded(ended *drain) {
	l.earlier = slices.DeleteFunc(l.earlier, func(d *drain) bool { return d == ended })
	l.dropAcknowledged()
}
