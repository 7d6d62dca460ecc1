package node

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// minDrainTime is the least time of a drain, so that pods are signalled even if the host or the limit leaves no time. A Prepare
// that hangs takes half of it (150 ms), and the margin another 100 ms: 50 ms are left for the list of the pods. This does not
// delay the host, which shuts down at its own deadline even if the lock is held.
const minDrainTime = 300 * time.Millisecond

// This file handles announcements and withdrawals in each state.

// apply handles an event of the host or of Trigger. An announcement begins, shortens or resumes a shutdown. A cancellation
// withdraws earlier announcements of the same announcer. The shutdown is cancelled when no announcement is left.
func (e Event) apply(n *Node) {
	switch {
	case n.runEnded:
		n.log("Ignored a shutdown event, because Run has ended")
	case !e.Cancelled:
		n.handleAnnouncement(n.announcement(e), e.WallTime)
	case e.Host: // the host has cancelled its shutdown
		n.newestHostInput = e // it may be about the shutdown in a log that is read later
		n.withdrawHostAnnouncements()
	default: // Trigger has cancelled its shutdown
		wasAnnounced := n.withdraw(e.withdraws)
		if n.awaitsLog { // it may be about the shutdown in the log, which is not read yet
			n.cancelsBeforeLog = append(n.cancelsBeforeLog, e)
		} else if !wasAnnounced {
			n.log(fmt.Sprintf("Trigger has announced no shutdown of origin %q, the cancellation changes nothing", e.Origin))
		}
	}
}

// withdraws reports whether e, a cancellation by Trigger, withdraws the announcement a. It withdraws only what
// Trigger has announced: everything if e has no origin, otherwise what has the same origin.
func (e Event) withdraws(a Announcement) bool {
	return !a.Host && (e.Origin == "" || a.Origin == e.Origin)
}

// announcement returns the announcement that an event, received now, makes.
func (n *Node) announcement(e Event) Announcement {
	a := Announcement{Host: e.Host, Origin: e.Origin, Kind: e.Kind, At: n.now, Deadline: e.Deadline}
	n.setDeadline(&a)
	return a
}

// setDeadline sets the deadline of a host's announcement that has none, if it is known how long the host waits. An announcement
// of an earlier drain stays without one.
func (n *Node) setDeadline(a *Announcement) {
	lacksDeadline := a.Host && a.Deadline.IsZero()
	if lacksDeadline && a.isOfNewestDrain() && n.hostLimit != 0 {
		a.Deadline = a.At.Add(max(n.hostLimit, 0)) // a negative limit: the host does not wait
	}
}

// apply records how long the host waits, and shortens the drain in progress if that is less than was known.
func (l HostLimit) apply(n *Node) {
	n.hostLimit = time.Duration(l)
	if n.state != StateDraining { // the next announcement uses n.limit
		return
	}
	s := n.shutdown
	before := s.HostEnd
	for i := range s.Announced {
		a := &s.Announced[i]
		n.setDeadline(a)
		if a.isOfNewestDrain() {
			s.HostEnd = times.Earlier(s.HostEnd, a.Deadline)
		}
	}
	if !s.HostEnd.Equal(before) {
		n.markDirty(s)
		n.drain.shortenTable(n)
	}
}

// handleAnnouncement lets an announcement begin a shutdown or, if one is in progress, resume it, shorten it or begin
// another drain of it. wall is when the announcement was received, by the wall clock.
func (n *Node) handleAnnouncement(a Announcement, wall time.Time) {
	s := n.shutdown
	if !a.Deadline.IsZero() && !n.now.Before(a.Deadline) {
		n.emit(Effect{Do: LogError, Text: fmt.Sprintf("The deadline of the shutdown announced by %q has passed: pods get 0 s", a.Origin)})
	}
	switch n.state {
	case StateNone, StateAwaitingLog:
		n.beginShutdown(a, wall)
	case StateAwaitingHost:
		if n.hasTimeLeft(s) && s.matches(a) {
			n.resume(&a)
		} else { // the log's shutdown is over, or of another kind
			n.abandonPreviousShutdown()
			n.beginShutdown(a, wall)
		}
	case StateDraining:
		before := s.HostEnd
		s.announce(a)
		n.markDirty(s)
		if !s.HostEnd.Equal(before) {
			n.drain.shortenTable(n)
		}
	case StateReleased:
		if isNewAnnouncer := s.announce(a); isNewAnnouncer { // a repeated announcement begins no other drain
			n.restartDrain()
		}
		n.markDirty(s)
	}
}

// saysNone reports whether the host has answered that no shutdown is pending.
func (p HostAnswered) saysNonePending() bool { return p.Known && (p.Event == nil || p.Event.Cancelled) }

// apply handles the host's answer. A pending shutdown counts as announced, unless its time is over: no drain begins then. If
// none is pending, the host's earlier announcements are withdrawn. If the host does not know, the state log decides.
func (p HostAnswered) apply(n *Node) {
	n.newestHostInput = p
	switch {
	case n.runEnded:
		return
	case !p.Known:
		n.decideWithoutHost()
		return
	case p.saysNonePending():
		n.withdrawHostAnnouncements()
		return
	}
	a := n.announcement(Event{Event: *p.Event, Host: true})
	hasPassed := !p.Event.Deadline.IsZero() && !n.now.Before(p.Event.Deadline)
	// isOverByLog: the log's shutdown may be this one, and its drain would no longer wait for pods.
	isOverByLog := n.state == StateAwaitingHost && !n.hasTimeLeft(n.shutdown) && n.shutdown.matches(a)
	switch {
	case hasPassed || isOverByLog:
		n.handleExpired(a)
	case n.state == StateReleased: // it is the shutdown whose lock is released: no other drain begins
		n.shutdown.announce(a)
		n.markDirty(n.shutdown)
	default:
		n.handleAnnouncement(a, p.WallTime)
	}
}

// handleExpired handles a pending shutdown whose deadline has passed. No drain begins. If the log has a
// shutdown that may be this one, its lock is released, and the final statuses of its pods are sent.
func (n *Node) handleExpired(a Announcement) {
	switch n.state {
	case StateAwaitingHost:
		n.shutdown.announce(a)
		n.markDirty(n.shutdown)
		n.publish(n.shutdown)
		n.giveUpPodsWithoutKill()
		n.emit(Effect{Do: KeepLock, Until: n.now}) // only a suspended lock can be released
		n.release(n.shutdown)
	case StateNone, StateAwaitingLog:
		n.log("The host reports a pending shutdown whose deadline has passed")
	case StateDraining, StateReleased: // that shutdown goes on
	}
}

// withdrawHostAnnouncements withdraws what the host has announced, because the host has cancelled its shutdown or has none
// pending. The shutdown is cancelled, unless Trigger has announced it too. In StateUnsettled the agent has waited for this
// answer, and settleByLog decides how the shutdown of the log continues.
func (n *Node) withdrawHostAnnouncements() {
	switch n.state {
	case StateNone, StateAwaitingLog:
	case StateAwaitingHost:
		n.shutdown.withdraw(Announcement.isOfHost)
		n.markDirty(n.shutdown)
		n.decideWithoutHost()
	case StateDraining, StateReleased:
		n.withdraw(Announcement.isOfHost)
	}
}

// withdraw removes the announcements that match; wasAnnounced says that there were any. If none remains, the
// shutdown is cancelled.
func (n *Node) withdraw(match func(Announcement) bool) (wasAnnounced bool) {
	s := n.shutdown
	if n.state == StateNone || n.state == StateAwaitingLog { // no shutdown is in progress
		return false
	}
	if removed := s.withdraw(match); !removed {
		return false
	}
	n.markDirty(s)
	if len(s.Announced) == 0 {
		n.cancel()
	}
	return true
}

// settleByLog decides, by what the state log has, how the log's unfinished shutdown continues: the host has not confirmed
// it. If no announcement of it is left, it is cancelled. If it has time left, it resumes; otherwise it ends. In any
// state other than StateUnsettled settleByLog does nothing.
func (n *Node) decideWithoutHost() {
	switch {
	case n.state != StateAwaitingHost: // there is nothing to settle
	case len(n.shutdown.Announced) == 0:
		n.cancel()
	case n.hasTimeLeft(n.shutdown):
		n.resume(nil) // nil: the log alone decides
	default:
		n.abandonPreviousShutdown()
	}
}

// apply leaves StateUnsettled by the log alone in three cases: an adopted lock shows that the host waits, only Trigger has
// announced the log's shutdown, or its time is over anyway. Otherwise the state stays StateUnsettled: the host may still
// answer.
func (u HostUnreached) apply(n *Node) {
	n.newestHostInput = u
	if n.state != StateAwaitingHost || n.runEnded {
		return
	}
	isOfHost := slices.ContainsFunc(n.shutdown.Announced, Announcement.isOfHost)
	if u.Adopted || !isOfHost || !n.hasTimeLeft(n.shutdown) {
		n.decideWithoutHost()
	}
}

// beginShutdown begins a new shutdown and its drain, because of the announcement a. wall is when a was received, by
// the wall clock.
func (n *Node) beginShutdown(a Announcement, wall time.Time) {
	n.lastShutdownNumber++
	s := &Shutdown{Number: n.lastShutdownNumber, Began: n.now, BeganWallTime: wall}
	n.shutdown = s
	s.announce(a)
	n.startDrain(s)
	n.replaceLog()
	n.emit(Effect{Do: RecordEvent, Text: textDetected})
}

// policy returns the pod policy for the kind of a shutdown. It also reports what is wrong with the policy, if anything is.
func (n *Node) policy(s *Shutdown) Policy {
	n.reportPolicyError(s)
	if p := n.policies.Of[s.Kind]; p != "" {
		return p
	}
	return SetTerminal
}

// reportPolicyError reports, once, what is wrong with the pod policy for the kind of a shutdown, if anything is.
func (n *Node) reportPolicyError(s *Shutdown) {
	if text := n.policies.Errors[s.Kind]; text != "" {
		n.reportError(s, text)
	}
}

// resume continues the shutdown of the log with its deadlines. a is the announcement that confirms the shutdown, and
// may shorten the deadlines; nil: none does, the log alone decided.
func (n *Node) resume(a *Announcement) {
	s := n.shutdown
	if a != nil {
		s.announce(*a)
	}
	s.Ended = time.Time{}
	n.emit(Effect{Do: RecordEvent, Text: textDetected})
	n.startDrain(s)
	n.drain.shortenTable(n) // also if the log is damaged so that its timetable ends after HostEnd
}

// startDrain begins the drain of a new or resumed shutdown. Pods of earlier shutdowns that are still terminating
// join it.
func (n *Node) startDrain(s *Shutdown) {
	n.setState(StateDraining)
	n.addRunningPodsToReport(s)
	s.SendsStatuses = n.Options.Steps.Statuses
	if s.Timetable == nil {
		s.Timetable = n.preliminaryTable(s, s.Began)
	}
	n.markDirty(s)
	n.emit(Effect{Do: KeepLock, Until: s.releaseBy()})
	n.publish(s)
	n.drain.begin(n, s)
	n.continueKills()
}

// restartDrain begins another drain of a shutdown. The lock was released, and then another announcer announced the shutdown
// too: the last one in s.Announced. The earlier announcements get a zero At, because they are not of the new drain. HostEnd
// becomes the newest deadline, or an earlier announcement's deadline if that is sooner and has not passed.
func (n *Node) restartDrain() {
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
	s.DoneBuckets, s.Ended, s.HasFinalTable, s.isReported = 0, time.Time{}, false, false // these were of the previous drain
	s.Timetable = n.preliminaryTable(s, n.now)
	n.setState(StateDraining)
	n.addRunningPodsToReport(s)
	n.markDirty(s)
	n.emit(Effect{Do: RetakeLock})
	n.emit(Effect{Do: KeepLock, Until: s.releaseBy()})
	n.drain.begin(n, s)
}

// cancel cancels the shutdown. No further pod is signalled. Signalled pods keep their grace periods, and kills that
// were given up are retried.
func (n *Node) cancel() {
	s := n.shutdown
	if isDraining := n.drain.shutdown == s; isDraining {
		n.drain.stop(n)
	}
	s.Cancelled, s.Ended, s.Announced = true, n.now, nil
	n.markDirty(s)
	n.emit(Effect{Do: RecordEvent, Text: textCancelled})
	n.queueReport(s)
	n.setState(StateNone)
	n.clearKillPlanned()
	for _, p := range n.pods.all {
		p.isKillGivenUp = false // retry the kill: the node keeps running, and would otherwise refuse the pod forever
	}
	n.continueKills()
	n.emit(Effect{Do: TakeNextLock})
}

// clearKillPlanned records, for the next agent, that no drain plans to kill any pod any more.
func (n *Node) clearKillPlanned() {
	for _, p := range n.pods.all {
		if p.KillPlanned {
			p.KillPlanned = false
			n.markPodDirty(p)
		}
	}
}

// endUnsettled ends the unfinished shutdown that an earlier agent left in the log, when it does not continue: its
// time is over, the host has announced another one, or the host has not answered in time. The state goes from
// StateUnsettled to StateNone. Kills that have begun continue until their own deadlines, no others begin, and the
// agent takes a new lock.
func (n *Node) abandonPreviousShutdown() {
	s := n.shutdown
	s.Announced = nil
	if s.Ended.IsZero() { // otherwise the previous agent has released the lock
		s.Cancelled, s.Ended = true, n.now // not every pod was told to stop, so the drain must not count as complete
	}
	n.markDirty(s)
	n.queueReport(s)
	n.setState(StateNone)
	n.clearKillPlanned()
	n.continueKills()
	n.emit(Effect{Do: TakeNextLock})
}

// updateState makes the state changes that follow from time or from other changes, rather than from an input.
func (n *Node) updateState() {
	isUnsettled := n.state == StateAwaitingHost && !n.runEnded
	if isUnsettled && !n.awaitHostUntil.IsZero() && n.reachedOrWakeAt(n.awaitHostUntil) {
		n.abandonPreviousShutdown()
	}
	n.advanceTerminateAll()
	// Publish that no shutdown is in progress: after a shutdown of this agent, and also at its start, in case a previous
	// agent has published a shutdown. At the start this waits for the host's answer: that shutdown may still be pending.
	isIdle := n.state == StateNone && !n.runEnded
	hasPublished := n.api.wantedState != nil
	if isIdle && (n.newestHostInput != nil || hasPublished) {
		n.publish(nil)
	}
}

// release ends the shutdown, stores its end, and then releases the lock.
func (n *Node) release(s *Shutdown) {
	s.Ended = n.now
	n.markDirty(s)
	n.storeDirty()
	n.emit(Effect{Do: ReleaseLock})
	n.setState(StateReleased)
	n.queueReport(s)
}

// apply handles the end of Run: it stops the drain, releases the lock, and makes all reports now. The log still has the
// shutdown as unfinished, so that the next agent resumes it.
func (RunEnds) apply(n *Node) {
	n.runEnded = true
	if n.state == StateDraining {
		n.drain.stop(n)
		n.queueReport(n.shutdown)
	}
	if isReleased := n.state == StateReleased; !isReleased {
		n.emit(Effect{Do: ReleaseLock})
	}
	for len(n.queuedReports) > 0 {
		n.reportNow(n.queuedReports[0])
	}
}

// tableRequest returns what a timetable is made from. received is when the event that begins the drain was received,
// and hostEnd is when the host shuts down (zero: not known).
//
// A host that waits 30 s leaves slightly less than 30 s when its event is received. If up to 100 ms are missing to a whole
// second, received moves back by them, so that no grace period loses a second. A host or a limit that leaves less than
// minDrainTime counts as if it left minDrainTime.
func (n *Node) tableRequest(s *Shutdown, received, hostEnd time.Time) timetable.Request {
	if !hostEnd.IsZero() {
		missing := time.Second - hostEnd.Sub(received)%time.Second // to the next whole second
		if missing <= times.Lag {
			received = received.Add(-missing)
		}
		hostEnd = times.Later(hostEnd, received.Add(minDrainTime))
	}
	opts := n.Options
	if opts.Limit != 0 {
		opts.Limit = max(opts.Limit, minDrainTime)
	}
	return timetable.Request{
		Schedule: n.schedule(s.HasFinalTable), Options: opts, Received: received, HostEnd: hostEnd,
		Prepared: s.IsPrepareOver, Held: s.IsHoldOver, Published: s.IsPublishOver || s.isTerminateAll,
	}
}

// newTable returns the timetable of a drain until its first list. makeFinalTable then replaces it.
func (n *Node) preliminaryTable(s *Shutdown, received time.Time) *timetable.Table {
	return timetable.New(n.tableRequest(s, received, s.HostEnd))
}

// schedule returns the configured schedule. Without one it returns a single bucket, as long as the longest grace period of a
// pod, but at least defaultSeconds. Before the drain is planned the pods are not known, and the bucket is 68 years long.
func (n *Node) schedule(isPlanned bool) plan.Schedule {
	if len(n.Schedule) > 0 {
		return n.Schedule
	}
	if !isPlanned {
		return plan.Schedule{{Seconds: math.MaxInt32}}
	}
	seconds := defaultSeconds
	for _, p := range n.pods.all {
		if grace := p.grace(); grace != nil && n.mustBeKilled(p) {
			seconds = max(seconds, *grace)
		}
	}
	return plan.Schedule{{Seconds: seconds}}
}
