package shutdown

import (
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// recordRead handles the record when it was read. folderErr is why the state folder could not be had;
// nil: it was. first is the shutdown that NewManager has found on record; nil: none.
func (s *states) recordRead(c store.Contents, folderErr error, first *nodeShutdown) {
	fx, had := s.effects, folderErr == nil
	switch {
	case !had:
		fx.recorder.setOpen(fx.ctx, false)
	case c.Unusable && fx.recorder.found(): // the disk fails now: what NewManager has read counts
	default:
		decided := first != nil && s.past == nil                                                 // the host was faster than the disk
		closes := c.Record != nil && c.Record.Report.Cancelled && c.Record.Report.Ended.IsZero() // load gives it an end
		s.past = fx.load(c)
		if closes {
			defer fx.recorder.save(0)
		}
		fx.show(c)
		if decided && s.past != nil && s.past.received.Equal(first.received) {
			s.past = nil // what the former agent has written since NewManager counts
			first.account.restore(c.Record, first.received, false)
			fx.recorder.save(0)
			fx.openOutbox()
			return
		}
	}
	fx.openOutbox()
	switch past := s.past; {
	case s.current != nil: // a shutdown has begun before the record could be read
		if past != nil && past.live() && !past.wasDismissed() && fits(past.account.head().Kind, s.current.account.head().Kind) {
			s.current.account.restore(c.Record, past.received, true)
			s.current.beganAt(past.received)
		}
		s.past = nil
		fx.recorder.save(0)
	case past == nil:
		fx.become(none)
		fx.restoreMarks(c.Record)
	case past.wasDismissed():
		s.takeUpDismissed()
	case !past.live() || past.awaitsTrigger(nil):
		fx.become(none)
		fx.recordEnded(past) // it is not closed: the host may still go down, or Trigger announce it again
	default:
		fx.become(unsettled)
		fx.timer.Reset(time.Until(past.end()))
		for _, origin := range s.taken {
			s.triggerCancelled(origin)
		}
		switch s.said { // the host was faster than the disk
		case stays:
			s.hostCancelled()
		case cannotTell:
			s.hostCannotTell(time.Now())
		case saidNothing:
		}
	}
	if fx.host == nil && had { // nobody can tell
		s.hostCannotTell(time.Now())
		s.closePast()
	}
	// Without the feature nothing is undone that an agent with it has done, and beside an agent that has
	// the folder nothing that it may be doing.
	if fx.host == nil && fx.gate && !errors.Is(folderErr, store.ErrLocked) {
		fx.clearNodeState()
	}
}

// resume goes on with the shutdown of a former agent. a is its announcement by the host; nil if
// nobody has said anything.
func (s *states) resume(a *announcement, received time.Time) {
	fx, past := s.effects, s.past
	s.past, s.current = nil, past
	sooner := false
	if a != nil {
		_, sooner = past.join(*a, fx.end(*a, received))
	}
	klog.FromContext(fx.ctx).V(1).Info("Shutdown manager goes on with the shutdown of a former agent", "began", past.received)
	fx.events.detected()
	past.account.reopen()
	fx.takeUp(past, draining)
	fx.showTimes(past.number, past.account.head().Started, time.Time{})
	p := past.soFar()
	request := fx.request(past.hostEnd(), past.received)
	request.Held, request.Published, request.Done = p.steps[drain.Held], p.steps[drain.Published], p.done
	if sooner || p.table == nil {
		request.Received, request.Until = received, past.end()
		fx.startDrain(past, request, nil)
		return
	}
	request.Done = min(p.done, max(len(p.table.Schedule())-1, 0)) // for pods that no agent has seen yet
	fx.startDrain(past, request, p.table)
}

// takeUpPast makes the shutdown of a former agent, whose time is over, the current one: as one for
// which the host was let go, or as dismissed if it was.
func (s *states) takeUpPast(a announcement) {
	past := s.past
	if past.wasDismissed() {
		s.takeUpDismissed()
		return
	}
	s.past, s.current = nil, past
	past.join(a, past.end())
	s.effects.takeUp(past, released)
	s.effects.outbox.Publish(past.account.nodeState()) // the former agent may have died before it was published
	s.effects.letGo(past)
	s.effects.recordEnded(past)
}

// dropPast ends the shutdown of a former agent: it was cancelled, or its time is over.
func (s *states) dropPast(cancelled bool) {
	s.effects.become(none)
	if past := s.past; past != nil {
		s.past = nil
		s.effects.close(past, cancelled || len(past.announced()) == 0)
	}
	s.effects.clearNodeState()
}

// closePast closes the report of a former agent's shutdown that does not go on. One that Trigger may
// announce again stays.
func (s *states) closePast() {
	if past := s.past; past != nil && (!past.live() || !past.awaitsTrigger(nil)) {
		s.past = nil
		s.effects.close(past, false)
	}
}

// takeUpDismissed makes the shutdown of a former agent the current one, as one that Trigger has
// cancelled. The former agent may not have taken the node state back.
func (s *states) takeUpDismissed() {
	past := s.past
	s.past, s.current = nil, past
	s.effects.takeUp(past, dismissed)
	s.effects.last.set(past.number, past.account.report)
	s.effects.outbox.Restore(past.account.spares)
	s.effects.publishNone()
	s.effects.restoreMarked(past.account.spares)
}
