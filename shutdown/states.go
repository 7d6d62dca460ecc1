package shutdown

import (
	"slices"
	"time"

	"k8s.io/klog/v2"
)

// state is what a manager knows of the shutdown of its node. The page testdata/states.md has each
// state against each input. Only [admissionState.become] changes it.
type state int32

const (
	// none means that no shutdown is known.
	none state = iota
	// unsettled means that a shutdown of a former agent may go on, or that another agent has the
	// state folder. The host has not said.
	unsettled
	// draining means that a shutdown is announced, and the host was not released.
	draining
	// released means that the host was let go, and has not said that it stays.
	released
	// dismissed means that Trigger has cancelled a shutdown that the host has pending.
	dismissed
)

func (s state) String() string {
	return [...]string{"none", "unsettled", "draining", "released", "dismissed"}[s]
}

// refuses reports whether no pod is admitted in this state.
func (s state) refuses() bool { return s == unsettled || s == draining || s == released }

// states handles the inputs of the event loop: what the host says, what Trigger says, what is on
// record, and the end of a shutdown's time.
type states struct {
	effects *effects
	current *nodeShutdown // the shutdown that is under way or was dismissed; nil: none is
	past    *nodeShutdown // that of a former agent of this boot; nil: there is none, or it is closed
	said    hostSaid      // before the record was read
	pends   *nodeShutdown // the one that the host had pending when Trigger took something back; nil: none, or the host has cancelled it
	taken   []string      // the origins whose announcements Trigger has taken back while the state was unsettled
}

// hostSaid is what the host has said while it had announced no shutdown.
type hostSaid int

const (
	saidNothing hostSaid = iota // or it has announced one since
	cannotTell
	stays // so another agent's folder leaves nothing open
)

// state returns the state of the shutdown.
func (s *states) state() state { return s.effects.admission.state() }

// isIn reports whether a shutdown is the current one and in one of some states.
func (s *states) isIn(shutdown *nodeShutdown, some ...state) bool {
	return s.current == shutdown && slices.Contains(some, s.state())
}

// hostEvent handles an event of the host. One without a deadline gets that which the host granted
// last.
func (s *states) hostEvent(event Event, received time.Time) {
	if s.said = saidNothing; event.Cancelled {
		s.hostCancelled()
		s.effects.clearNodeState()
		return
	}
	s.announced(s.effects.announcementOf(event, true, received), received, false)
}

// hostPending handles the answer of Session.Pending; nil means that no shutdown is pending. If
// known is false, the host cannot tell.
func (s *states) hostPending(pending *Event, known bool, received time.Time) {
	switch {
	case !known:
		s.hostCannotTell(received)
	case pending == nil || pending.Cancelled:
		s.hostCancelled()
	case !pending.Deadline.IsZero() && !received.Before(pending.Deadline):
		s.said = saidNothing
		s.announcedInThePast(s.effects.announcementOf(*pending, true, received))
	default:
		s.said = saidNothing
		s.announced(s.effects.announcementOf(*pending, true, received), received, true)
	}
	s.effects.clearNodeState()
}

// triggered handles an event of Trigger.
func (s *states) triggered(event Event, received time.Time) {
	if event.Cancelled {
		s.triggerCancelled(event.Origin)
		s.effects.clearNodeState()
		return
	}
	s.announced(s.effects.announcementOf(event, false, received), received, false)
}

// announced handles an event, or the answer of Pending if pending is true.
func (s *states) announced(a announcement, received time.Time, pending bool) {
	switch s.state() {
	case none, unsettled:
		switch was := s.past != nil && fits(s.past.account.head().Kind, a.kind); {
		case was && !s.past.wasDismissed() && s.past.live() && !s.past.awaitsTrigger(&a):
			s.resume(&a, received)
		case was && pending:
			s.takeUpPast(a)
		default:
			s.closePast()
			s.past, s.current = nil, s.effects.begin(a, received, nil)
		}
	case draining:
		_, sooner := s.current.join(a, s.effects.end(a, received))
		s.effects.recorder.save(stepLag)
		if sooner {
			s.effects.drainSooner(s.current, received)
		}
	case released:
		first, _ := s.current.join(a, s.effects.end(a, received))
		s.effects.recorder.save(stepLag)
		if first && !pending {
			s.effects.drainAgain(s.current, a, received)
		}
	case dismissed:
		if !pending {
			s.current = s.effects.begin(a, received, s.current)
		}
	}
}

// announcedInThePast handles an answer of Pending whose deadline has passed: it begins nothing and
// ends nothing.
func (s *states) announcedInThePast(a announcement) {
	switch {
	case s.past != nil && (s.state() == unsettled || s.past.wasDismissed() || fits(s.past.account.head().Kind, a.kind)):
		s.takeUpPast(a)
	case s.state() == none || s.state() == unsettled:
		klog.FromContext(s.effects.ctx).Info("The host has a shutdown pending whose time is over", "kind", a.kind, "deadline", a.deadline)
	}
}

// hostCancelled handles the cancellation by the host, or its answer that nothing is pending.
func (s *states) hostCancelled() {
	s.said, s.pends = stays, nil
	switch s.state() {
	case none:
		s.closePast()
	case unsettled: // the host does not speak for others: what Trigger has announced too goes on
		if s.past != nil && s.past.live() {
			if _, left := s.past.takeBack(byHost); left {
				s.resume(nil, time.Now())
				return
			}
		}
		s.dropPast(true)
	case draining, released:
		s.takeBack(byHost)
	case dismissed:
		s.conclude()
	}
}

// triggerCancelled handles a cancellation by Trigger. The origin "" means all announcements. If none is
// left of a shutdown that the host has pending all the same, it is dismissed and the lock is kept.
func (s *states) triggerCancelled(origin string) {
	match := func(a announcement) bool { return origin == "" || a.origin == origin }
	of, isPast := s.current, s.state() == unsettled
	if isPast {
		of, s.taken = s.past, append(s.taken, origin) // the record may not have been read
	}
	if of == nil || s.state() == dismissed {
		return
	}
	announced := of.announced()
	if announced.ofHost() {
		s.pends = of
	}
	switch dismisses := s.pends == of && announced.only(match); {
	case isPast && (dismisses || origin == ""): // the host may have it pending
		of.dismiss()
		s.takeUpDismissed()
		s.effects.close(of, true)
	case isPast:
		of.takeBack(match)
		s.effects.recorder.setNewest(of)
		s.effects.recorder.save(0)
	case dismisses:
		of.dismiss()
		s.effects.cancel(of)
		s.effects.become(dismissed)
	default:
		s.takeBack(match)
	}
}

// takeBack takes back announcements of the current shutdown. If none is left the shutdown is
// cancelled.
func (s *states) takeBack(match func(announcement) bool) {
	switch removed, left := s.current.takeBack(match); {
	case !removed:
		klog.FromContext(s.effects.ctx).V(1).Info("Nothing is cancelled, because nobody of this origin has announced the shutdown")
	case left:
		s.effects.recorder.save(0)
	default:
		s.effects.cancel(s.current)
		s.conclude()
	}
}

// hostCannotTell handles a host that cannot say whether a shutdown is pending, or is not reached:
// the record counts.
func (s *states) hostCannotTell(received time.Time) {
	s.said = max(s.said, cannotTell)
	switch {
	case s.state() != unsettled || s.past == nil || !s.past.live():
	case len(s.past.announced()) > 0:
		s.resume(nil, received)
	default: // Trigger has cancelled it meanwhile
		s.dropPast(true)
	}
}

// hostUnreached handles a host that no session has reached since Run began: the record counts if a
// lock was adopted, because the host then waits.
func (s *states) hostUnreached() {
	if s.effects.host.Adopted() {
		s.hostCannotTell(time.Now())
	}
	s.effects.clearNodeState()
}

// timeOver handles the end of the time of the current shutdown, or of that on record.
func (s *states) timeOver() {
	switch s.state() {
	case unsettled:
		s.dropPast(false)
	case draining:
		s.effects.release(s.current)
	case dismissed:
		s.effects.letGo(s.current)
	case none, released:
	}
	s.effects.clearNodeState()
}

// conclude ends the current shutdown: the node stays.
func (s *states) conclude() {
	current := s.current
	s.current = nil
	s.effects.conclude(current)
}
