package node

import (
	"fmt"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// leastTime is how long a drain takes whose host, or limit, leaves it no time, so that the pods are signalled at
// all: a host that has gone on is not delayed by a lock.
const leastTime = 200 * time.Millisecond

// This file is the table of states and inputs: who has announced the shutdown, and who takes it back.

// apply handles an event.
func (e Event) apply(n *Node) {
	switch {
	case n.isEnding:
		n.log("Run has ended, an event of a shutdown does nothing any more")
	case !e.Cancelled:
		n.announced(n.announcement(e), e.Wall)
	case e.Host:
		n.hostSaid = e
		n.hostStays()
	default:
		isTaken := n.takeBack(e.takesBack)
		if n.state == StateOpening {
			n.takenBack = append(n.takenBack, e)
		} else if !isTaken {
			n.log(fmt.Sprintf("Trigger has announced no shutdown of origin %q, the cancellation changes nothing", e.Origin))
		}
	}
}

// takesBack reports whether an event of Trigger takes an announcement back.
func (e Event) takesBack(a Announcement) bool {
	return !a.Host && (e.Origin == "" || a.Origin == e.Origin)
}

// announcement returns what an event announces. A host that names no deadline goes on when its limit
// is over.
func (n *Node) announcement(e Event) Announcement {
	a := Announcement{Host: e.Host, Origin: e.Origin, Kind: e.Kind, At: n.now, Deadline: e.Deadline}
	n.setDeadline(&a)
	return a
}

// setDeadline sets the deadline of a host that has named none, once its limit is known.
func (n *Node) setDeadline(a *Announcement) {
	if a.Host && a.Deadline.IsZero() && !a.At.IsZero() && n.limit != 0 {
		a.Deadline = a.At.Add(max(n.limit, 0))
	}
}

// apply takes over how long the host waits.
func (l Limit) apply(n *Node) {
	n.limit = time.Duration(l)
	if n.state != StateDraining {
		return
	}
	s := n.shutdown
	before := s.HostEnd
	for i := range s.Announced {
		a := &s.Announced[i]
		if n.setDeadline(a); !a.At.IsZero() {
			s.HostEnd = times.Earlier(s.HostEnd, a.Deadline)
		}
	}
	if !s.HostEnd.Equal(before) {
		n.changed(s)
		n.drain.refit(n)
	}
}

// announced handles an announcement.
func (n *Node) announced(a Announcement, wall time.Time) {
	s := n.shutdown
	if !a.Deadline.IsZero() && !n.now.Before(a.Deadline) {
		n.do(Effect{Do: LogError, Text: fmt.Sprintf("The deadline of the shutdown that %q announces has passed: the pods have no time", a.Origin)})
	}
	switch n.state {
	case StateNone, StateOpening:
		n.beginShutdown(a, wall)
	case StateUnsettled:
		if n.isLive(s) && s.fits(a) {
			n.resume(&a)
		} else {
			n.endUnsettled()
			n.beginShutdown(a, wall)
		}
	case StateDraining:
		before := s.HostEnd
		s.join(a)
		n.changed(s)
		if end := s.HostEnd; !end.Equal(before) {
			n.drain.refit(n)
		}
	case StateReleased:
		if isFirst := s.join(a); isFirst {
			n.drainAgain()
		}
		n.changed(s)
	}
}

// apply handles the host's answer whether a shutdown is pending.
func (p Pending) apply(n *Node) {
	n.hostSaid = p
	switch {
	case n.isEnding:
	case !p.Known:
		n.hostCannotTell()
	case p.Event == nil || p.Event.Cancelled:
		n.hostStays()
	case !p.Event.Deadline.IsZero() && !n.now.Before(p.Event.Deadline):
		n.pendingInThePast(n.announcement(Event{Event: *p.Event, Host: true}))
	case n.state == StateUnsettled && !n.isLive(n.shutdown) && n.shutdown.fits(Announcement{Kind: p.Event.Kind}):
		n.pendingInThePast(n.announcement(Event{Event: *p.Event, Host: true}))
	case n.state == StateReleased:
		n.shutdown.join(n.announcement(Event{Event: *p.Event, Host: true}))
		n.changed(n.shutdown)
	default:
		n.announced(n.announcement(Event{Event: *p.Event, Host: true}), p.Wall)
	}
}

// pendingInThePast handles a shutdown that is pending, and whose time is over: nothing is begun. If the
// log has it, the node is taken for released, and statuses are sent.
func (n *Node) pendingInThePast(a Announcement) {
	switch n.state {
	case StateUnsettled:
		n.shutdown.join(a)
		n.changed(n.shutdown)
		n.publish(n.shutdown)
		n.giveUpPods()
		n.do(Effect{Do: Suspend, Until: n.now})
		n.release(n.shutdown)
	case StateNone, StateOpening:
		n.log("The host has a shutdown pending whose time is over")
	case StateDraining, StateReleased:
	}
}

// hostStays handles a host that takes its announcement back, or has none pending.
func (n *Node) hostStays() {
	switch n.state {
	case StateNone, StateOpening:
	case StateUnsettled:
		n.shutdown.takeBack(Announcement.isOfHost)
		n.changed(n.shutdown)
		n.hostCannotTell()
	case StateDraining, StateReleased:
		n.takeBack(Announcement.isOfHost)
	}
}

// takeBack removes announcements. A shutdown without any is cancelled, but for one that the host may
// have pending.
func (n *Node) takeBack(match func(Announcement) bool) (isTaken bool) {
	s := n.shutdown
	if n.state == StateNone || n.state == StateOpening || !s.takeBack(match) {
		return false
	}
	n.changed(s)
	if len(s.Announced) == 0 && n.state != StateUnsettled {
		n.cancel()
	}
	return true
}

// hostCannotTell handles a host that cannot say whether a shutdown is pending: the log counts.
func (n *Node) hostCannotTell() {
	switch {
	case n.state != StateUnsettled:
	case len(n.shutdown.Announced) == 0:
		n.cancel()
	case n.isLive(n.shutdown):
		n.resume(nil)
	default:
		n.endUnsettled()
	}
}

// apply handles a host that was not reached: if it waits for an adopted lock, the log counts.
func (u Unreached) apply(n *Node) {
	n.hostSaid = u
	if n.isEnding {
		return
	}
	if n.state == StateUnsettled && (u.Adopted || !n.isLive(n.shutdown)) {
		n.hostCannotTell()
	}
}

// beginShutdown begins a shutdown.
func (n *Node) beginShutdown(a Announcement, wall time.Time) {
	n.number++
	s := &Shutdown{Number: n.number, Began: n.now, Wall: wall, Policy: n.policy(a)}
	n.shutdown = s
	s.join(a)
	n.drainFor(s)
	n.do(Effect{Do: RecordEvent, Text: textDetected})
}

// policy returns the policy for a kind of shutdown.
func (n *Node) policy(a Announcement) Policy {
	if p := n.Policies[a.Kind]; p != "" {
		return p
	}
	return SetTerminal
}

// resume goes on with the shutdown of the log. a announces it again; nil: nobody has said anything.
func (n *Node) resume(a *Announcement) {
	s := n.shutdown
	before := s.HostEnd
	if a != nil {
		s.join(*a)
	}
	s.Ended = time.Time{}
	n.settleBy = time.Time{}
	n.changed(s)
	n.do(Effect{Do: RecordEvent, Text: textDetected})
	n.drainFor(s)
	if end := s.HostEnd; a != nil && !end.Equal(before) {
		n.drain.refit(n)
	}
}

// drainFor begins the drain of a shutdown. It takes over the pods of earlier ones that still run.
func (n *Node) drainFor(s *Shutdown) {
	n.set(StateDraining)
	n.joinRunning(s)
	s.Statuses = n.Options.Steps.Statuses
	if s.Timetable == nil {
		s.setTable(n.newTable(s, s.Began))
	}
	n.changed(s)
	n.newLog()
	n.do(Effect{Do: Suspend, Until: s.releaseBy()})
	n.publish(s)
	n.drain.begin(n, s)
	n.killLeft()
}

// drainAgain drains again a shutdown for which the lock was released, because another announcer has
// time. The time of those before is spent.
func (n *Node) drainAgain() {
	s := n.shutdown
	for i := range len(s.Announced) - 1 {
		s.Announced[i].At = time.Time{}
	}
	s.HostEnd = s.Announced[len(s.Announced)-1].Deadline
	for _, a := range s.Announced {
		if n.now.Before(a.Deadline) {
			s.HostEnd = times.Earlier(s.HostEnd, a.Deadline)
		}
	}
	s.Done, s.Ended, s.Planned, s.isReported = 0, time.Time{}, false, false
	s.setTable(n.newTable(s, n.now))
	n.set(StateDraining)
	n.joinRunning(s)
	n.changed(s)
	n.do(Effect{Do: Retake})
	n.do(Effect{Do: Suspend, Until: s.releaseBy()})
	n.drain.begin(n, s)
}

// cancel cancels the shutdown: no further pod is signalled, and whoever was runs out its grace period.
func (n *Node) cancel() {
	s := n.shutdown
	if n.drain.of == s {
		n.drain.stop(n)
	}
	s.Cancelled, s.Ended, s.Announced = true, n.now, nil
	n.settleBy = time.Time{}
	n.changed(s)
	n.do(Effect{Do: RecordEvent, Text: textCancelled})
	n.toReport(s)
	n.set(StateNone)
	n.forgetMeant()
	for _, p := range n.pods.all {
		p.isGivenUp = false // the node stays
	}
	n.killLeft()
	n.do(Effect{Do: HoldAgain})
}

// forgetMeant says that no drain means to kill the pods that were not signalled.
func (n *Node) forgetMeant() {
	for _, p := range n.pods.all {
		if p.Meant {
			p.Meant = false
			n.changed(p)
		}
	}
}

// endUnsettled closes the shutdown of the log, which does not go on: its pods have ended with their
// time.
func (n *Node) endUnsettled() {
	s := n.shutdown
	s.Ended, s.Announced = n.now, nil
	n.settleBy = time.Time{}
	n.changed(s)
	n.toReport(s)
	n.set(StateNone)
	n.forgetMeant()
	n.killLeft()
	n.do(Effect{Do: HoldAgain})
}

// settle handles the moments at which the state changes by itself.
func (n *Node) settle() {
	if n.state == StateUnsettled && !n.settleBy.IsZero() && !n.isEnding && n.passed(n.settleBy) {
		n.endUnsettled()
	}
	n.terminate()
	// What a previous agent has published is taken back once the host has said that nothing goes on.
	if n.state == StateNone && !n.isEnding && (n.hostSaid != nil || n.api.wanted != nil) {
		n.publish(nil)
	}
}

// release releases the lock.
func (n *Node) release(s *Shutdown) {
	s.Ended = n.now
	n.changed(s)
	n.store()
	n.do(Effect{Do: Release})
	n.set(StateReleased)
	n.toReport(s)
}

// apply ends the shutdown for this agent: the lock is released, and the log stays as it is.
func (RunEnds) apply(n *Node) {
	if n.isEnding = true; n.state == StateDraining {
		n.drain.stop(n)
		n.toReport(n.shutdown)
	}
	if n.state != StateReleased {
		n.do(Effect{Do: Release})
	}
	for len(n.reports) > 0 {
		n.reportNow(n.reports[0])
	}
}

// request returns what a timetable of a shutdown is made for.
//
// Of a host's 30 s a little less is left when its event is received: what lacks of a whole second, 100
// ms at most, has been before.
func (n *Node) request(s *Shutdown, received, hostEnd time.Time) timetable.Request {
	if part := hostEnd.Sub(received) % time.Second; !hostEnd.IsZero() && part >= time.Second-times.Lag {
		received = received.Add(part - time.Second)
	}
	if !hostEnd.IsZero() {
		hostEnd = times.Later(hostEnd, received.Add(leastTime))
	}
	opts := n.Options
	if opts.Limit != 0 {
		opts.Limit = max(opts.Limit, leastTime)
	}
	return timetable.Request{
		Schedule: n.schedule(s.Planned), Options: opts, Received: received, HostEnd: hostEnd,
		Prepared: s.Prepared, Held: s.Held, Published: s.Published || s.local,
	}
}

// newTable returns the timetable of a drain whose event was received at a time, before a list is known.
func (n *Node) newTable(s *Shutdown, received time.Time) timetable.Table {
	return timetable.New(n.request(s, received, s.HostEnd))
}

// schedule returns the schedule, or one bucket that lasts as long as the longest grace period of a
// pod, which is known once a drain is planned.
func (n *Node) schedule(isPlanned bool) plan.Schedule {
	if len(n.Schedule) > 0 {
		return n.Schedule
	}
	var seconds int64
	for _, p := range n.pods.all {
		if grace := p.grace(); grace != nil && n.isDue(p) {
			seconds = max(seconds, *grace)
		}
	}
	if !isPlanned || n.lister.lists == 0 {
		seconds = math.MaxInt32
	}
	return plan.Schedule{{Seconds: max(seconds, defaultSeconds)}}
}
