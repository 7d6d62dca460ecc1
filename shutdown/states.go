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

// announcement is what one announcer has said of a shutdown, and not taken back.
type announcement struct {
	host     bool // it came from a session, not from Trigger
	origin   string
	kind     Kind
	deadline time.Time // when the host goes on; zero: not known
}

// announcements are those that stand, one for each announcer.
type announcements []announcement

// add adds an announcement, or replaces that of the same announcer, whose deadline only moves
// earlier. first is true for a new announcer.
func (a *announcements) add(added announcement) (first bool) {
	for i, known := range *a {
		if known.host == added.host && known.origin == added.origin {
			if added.deadline.IsZero() || !known.deadline.IsZero() && known.deadline.Before(added.deadline) {
				added.deadline = known.deadline
			}
			(*a)[i] = added
			return false
		}
	}
	*a = append(*a, added)
	return true
}

// remove takes back the announcements that match, and reports whether there were any.
func (a *announcements) remove(match func(announcement) bool) (removed bool) {
	before := len(*a)
	*a = slices.DeleteFunc(slices.Clone(*a), match)
	return len(*a) < before
}

// ofHost reports whether the host has announced the shutdown.
func (a announcements) ofHost() bool {
	return slices.ContainsFunc(a, byHost)
}

// byHost matches what the host has announced.
func byHost(a announcement) bool { return a.host }

// kind returns the kind of the shutdown: that of a session counts before that of Trigger.
func (a announcements) kind() Kind {
	var kind Kind
	for _, known := range a {
		if known.kind != KindUnknown && (known.host || kind == KindUnknown) {
			kind = known.kind
		}
	}
	return kind
}

// announced handles an event, or the answer of Pending if pending is true.
func (l *loop) announced(a announcement, received time.Time, pending bool) {
	switch was := l.pastMayBe(a.kind); l.state() {
	case none, unsettled:
		switch {
		case was && pending && l.past.wasDismissed():
			l.dismissAgain()
		case was && !l.past.wasDismissed() && l.state() == unsettled && l.past.live():
			l.resume(&a, received)
		case was && pending:
			l.takeUpPast(a)
		default:
			l.closePast()
			l.begin(a, received)
		}
	case draining:
		if _, sooner := l.current.join(a, l.end(a, received)); sooner {
			l.drainAnew(received, false)
		}
	case released:
		if first, _ := l.current.join(a, l.end(a, received)); first && !pending {
			l.current.reopen(l.end(announcement{deadline: l.current.hostEnd()}, received))
			l.drainAnew(received, true)
		}
	case dismissed:
		if !pending {
			l.begin(a, received)
		}
	}
}

// announcedInThePast handles an answer of Pending whose deadline has passed: it begins nothing and
// ends nothing.
func (l *loop) announcedInThePast(a announcement) {
	switch {
	case l.past != nil && l.past.wasDismissed():
		l.dismissAgain()
	case l.state() == unsettled && l.past != nil, l.pastMayBe(a.kind):
		l.takeUpPast(a)
	case l.state() == none || l.state() == unsettled:
		klog.FromContext(l.ctx).Info("The host has a shutdown pending whose time is over", "kind", a.kind, "deadline", a.deadline)
	}
}

// hostCancelled handles the cancellation by the host, or its answer that nothing is pending.
func (l *loop) hostCancelled() {
	switch l.state() {
	case none:
		l.closePast()
	case unsettled:
		l.takeBackPast()
	case draining, released:
		l.takeBack(byHost)
	case dismissed:
		l.conclude()
	}
}

// triggerCancelled handles a cancellation by Trigger. The origin "" means all announcements.
func (l *loop) triggerCancelled(origin string) {
	switch {
	case l.state() == none || l.state() == dismissed:
	case l.state() == unsettled && origin == "":
		l.dismissPast()
	case l.state() == unsettled:
		if l.past != nil {
			l.past.takeBack(func(a announcement) bool { return a.origin == origin })
			l.m.recorder.setNewest(l.past)
			l.m.recorder.save(0)
		}
	case origin == "" && l.current.ofHost():
		l.dismiss()
	default:
		l.takeBack(func(a announcement) bool { return origin == "" || a.origin == origin })
	}
}

// takeBack takes back announcements of the current shutdown. If none is left the shutdown is
// cancelled.
func (l *loop) takeBack(match func(announcement) bool) {
	removed, left := l.current.takeBack(match)
	if !removed {
		klog.FromContext(l.ctx).V(1).Info("Nothing is cancelled, because nobody of this origin has announced the shutdown")
	} else if !left {
		l.cancel()
		l.conclude()
	}
}

// hostCannotTell handles a host that cannot say whether a shutdown is pending, or is not reached:
// the record counts, unless Trigger has taken back what it has announced.
func (l *loop) hostCannotTell(received time.Time) {
	switch {
	case l.state() != unsettled || l.past == nil || !l.past.live():
	case l.past.isAnnounced():
		l.resume(nil, received)
	default:
		l.dropPast(true)
	}
}

// timeOver handles the end of the time of the current shutdown, or of that on record.
func (l *loop) timeOver() {
	switch l.state() {
	case unsettled:
		l.dropPast(false)
	case draining:
		l.become(released)
	case dismissed:
		l.letGo()
	case none, released:
	}
}
