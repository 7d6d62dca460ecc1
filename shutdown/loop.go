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

// message is something the event loop has to do. It runs in the loop and must
// not block.
type message func(*loop)

// loop owns the state of the shutdown. It never waits for pods, for the host or
// for reports, so that a cancellation is heard at any time.
type loop struct {
	m         *Manager
	ctx       context.Context // of Run
	keeper    *keeper         // nil: nothing is watched
	announcer *announcer
	queue     *sharedQueue
	calls     *call.Group    // of the embedder's code
	drains    sync.WaitGroup // that have begun

	current   *drain       // of the shutdown that is under way; nil: none is
	earlier   []*drain     // cancelled or overtaken, the latest first
	untold    []*drain     // the same, and those that are over, until all of their final statuses are acknowledged
	published *publication // of the shutdown that is under way; nil: none yet
	announced bool         // the host has said that it shuts down
	triggered bool         // Trigger has
	session   uint64       // in which the host was last heard
	numbers   uint64       // of the shutdowns so far

	recalled bool     // what a former agent has left is known
	late     []func() // what is done then, in order

	unfinished *progress   // of a former agent; nil: none, or it was taken up
	concluded  *progress   // of one that may not have let the host go; nil: none
	expiry     *time.Timer // when the time of that is over
	said       bool        // the node's state is what this agent says it is
	trouble    []error     // with the state files, for the next report
}

// putOff has something done when it is known what a former agent has left; false: it is. What
// is said of a shutdown counts for admission at once; nil: nothing is.
func (l *loop) putOff(said *Event, do func()) bool {
	if l.recalled {
		return false
	}
	if said != nil {
		l.m.admission.shuttingDown.Store(!said.Cancelled)
	}
	l.late = append(l.late, do)
	return true
}

// hear is an event of the host, in one of its sessions.
func (l *loop) hear(event Event, session uint64, received time.Time) {
	if l.putOff(&event, func() { l.hear(event, session, received) }) {
		return
	}
	l.session = session
	if event.Cancelled {
		l.hostCancelled()
		return
	}
	l.hostBegan(event, received)
}

// found is what a new session says of the shutdown under way; nil: of none. It
// counts only as long as that session has sent no event, which is newer. Not
// known means that the host cannot tell, and then nothing is concluded.
func (l *loop) found(pending *Event, known bool, session uint64, received time.Time) {
	if l.putOff(pending, func() { l.found(pending, known, session, received) }) {
		return
	}
	l.reopen(pending)
	switch {
	case l.session == session:
	case !known:
		l.cannotTell(received)
	case pending != nil && !pending.Cancelled:
		if p := l.unfinished; p != nil && !p.mayBe(pending.Kind) {
			l.unfinished = nil // another shutdown than the one on record; nobody is admitted in between
			l.close(p, false)
		}
		l.hostBegan(*pending, received)
	default:
		l.hostCancelled()
	}
	l.undo()
}

// hostBegan is a shutdown of the host, which waits as long as it was found to when
// the event does not say. The longest duration is no limit.
func (l *loop) hostBegan(event Event, received time.Time) {
	l.announced = true
	if limit, asked := l.m.lock.limit(); asked && limit < math.MaxInt64 && event.Deadline.IsZero() {
		event.Deadline = received.Add(limit)
	}
	l.begin(event, received)
}

// hostCancelled ends the host's part in a shutdown; one that was triggered too
// goes on.
func (l *loop) hostCancelled() {
	l.m.admission.refusesUntil.Store(nil) // also where another agent has the record
	l.forgo(true)
	l.announced = false
	if !l.triggered {
		l.cancel()
	}
}

// trigger is an event of the embedder. It cancels the host's shutdown too.
func (l *loop) trigger(event Event) {
	received := time.Now()
	if event.Cancelled {
		l.m.admission.refusesUntil.Store(nil)
	}
	if l.putOff(&event, func() { l.triggerAt(event, received) }) {
		return
	}
	l.triggerAt(event, received)
}

// triggerAt is an event of the embedder that was received at a time.
func (l *loop) triggerAt(event Event, received time.Time) {
	l.triggered = !event.Cancelled
	if event.Cancelled {
		l.forgo(true)
		l.announced = false
		l.cancel()
		return
	}
	l.begin(event, received)
}

// begin refuses admission and starts a drain. A shutdown that is under way
// already goes on, unless the event leaves it less time: then a new drain
// overtakes it, and the pods that still end join it.
func (l *loop) begin(event Event, received time.Time) {
	event = steady(event, received)
	if l.current != nil && !l.current.outlasts(event, received) {
		return
	}
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager detected new shutdown event", "kind", event.Kind, "origin", event.Origin)
	l.m.admission.shuttingDown.Store(true)
	l.said = true
	request := l.request(event, received)
	if l.current == nil {
		l.published = nil
		l.announcer.detected()
		l.queue.DropRestores()
	} else {
		request.overtakes = true
		l.retire(errOvertaken)
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
		l.m.inbox.post(func(l *loop) { l.forget(d) })
	})
}

// publish has the state of a drain published, if it is the current one and no other drain
// of the same shutdown has seen to that.
func (l *loop) publish(d *drain, state NodeState) *publication {
	if l.current != d {
		return nil
	}
	if l.published == nil {
		l.published = l.announcer.publish(state)
	}
	return l.published
}

// request is what the next drain is begun for: a new shutdown, or that of a former agent.
func (l *loop) request(event Event, received time.Time) drainRequest {
	l.numbers++
	request := drainRequest{
		event: event, number: l.numbers, received: received, began: received, hosted: l.announced,
		epoch: l.m.lock.suspend(), unlock: l.m.host.unlock(event, received),
	}
	if l.unfinished != nil {
		request.resume(l.unfinished)
		request.unlock = l.m.state.ledger.moment(l.unfinished.HostEnd).Add(l.m.host.margin() / 2)
		l.unfinished = nil
	}
	return request
}

// newDrain is the next drain. The lock is let go at the end of the host's time, also if
// the drain does not come as far as its timetable.
func (l *loop) newDrain(request drainRequest) *drain {
	d := l.m.newDrain(l.ctx, request, l.calls)
	d.statuses.queue = l.queue.Queue
	d.killing.earlier = l.rosters()
	for _, err := range l.trouble {
		d.record.keep(err)
	}
	l.trouble = nil
	l.dropTold()
	d.record.untold = slices.Clone(l.untold)
	l.untold = append(l.untold, d)
	d.record.ledger.newest.Store(d.record)
	l.m.lock.releaseAt(l.ctx, request.epoch, request.unlock)
	return d
}

// rosters are those of the drains whose pods may still end, the latest first.
func (l *loop) rosters() []*kills.Roster {
	rosters := make([]*kills.Roster, len(l.earlier))
	for i, d := range l.earlier {
		rosters[i] = d.killing.roster
	}
	return rosters
}

// cancel opens admission again, stops the drain and has the lock taken anew.
func (l *loop) cancel() {
	if l.current == nil {
		return
	}
	klog.FromContext(l.ctx).V(1).Info("Shutdown manager detected shutdown cancellation")
	called := l.current
	l.retire(errCancelled)
	called.record.calledOff()
	l.m.lock.renew()
	l.m.admission.shuttingDown.Store(false)
	l.announcer.cancelled()
	if l.keeper != nil {
		l.keeper.rouse()
	}
}

// retire stops the current drain: it signals no further pod. One that is over already has
// been forgotten, and is not kept.
func (l *loop) retire(cause error) {
	l.current.halt.stop(cause)
	select {
	case <-l.current.over.Done():
	default:
		l.earlier = slices.Insert(l.earlier, 0, l.current)
	}
	l.current = nil
}

// forget drops a drain whose pods have all ended.
func (l *loop) forget(ended *drain) {
	l.earlier = slices.DeleteFunc(l.earlier, func(d *drain) bool { return d == ended })
	l.dropTold()
}
