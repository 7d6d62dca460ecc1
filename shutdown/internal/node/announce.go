package node

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// minDrainTime is the least time of a drain, so that pods are signalled even if the host or the limit leaves no time. A Prepare
// that hangs takes half of it (150 ms), and the margin another 100 ms: 50 ms are left for the list of the pods. This does not
// delay the host, which shuts down at its own deadline even if the lock is held.
const minDrainTime = 300 * time.Millisecond

// This file handles announcements and withdrawals in each state.

// apply handles an announcement or a cancellation of a shutdown by the host or by Trigger. An announcement begins, shortens or
// resumes a shutdown. A cancellation withdraws earlier announcements, and the shutdown is cancelled if none is left.
//
// If the state log is not read yet, it may have an unfinished shutdown of the previous agent. n keeps the cancellation, which is
// then applied to that shutdown too.
func (e Event) apply(n *Node) {
	switch {
	case n.runEnded:
		n.log("Ignored a shutdown event, because Run has ended")
	case !e.Cancelled:
		n.handleAnnouncement(n.announcement(e), e.WallTime)
	case e.Host: // the host has cancelled its shutdown
		n.newestHostInput = e
		n.withdrawHostAnnouncements()
	default: // Trigger has cancelled its shutdown
		wasAnnounced := n.withdraw(e.withdraws)
		if n.awaitsLog {
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

// announcement returns the announcement of an event that is received now.
func (n *Node) announcement(e Event) Announcement {
	a := Announcement{Host: e.Host, Origin: e.Origin, Kind: e.Kind, At: n.now, Deadline: e.Deadline}
	n.setMissingDeadline(&a)
	return a
}

// setMissingDeadline sets the deadline of a host's announcement that has none, if it is known how long the host waits. An
// announcement of an earlier drain stays without one.
func (n *Node) setMissingDeadline(a *Announcement) {
	lacksDeadline := a.Host && a.Deadline.IsZero()
	if lacksDeadline && a.isOfNewestDrain() && n.hostLimit != 0 {
		a.Deadline = a.At.Add(max(n.hostLimit, 0)) // a negative limit: the host does not wait
	}
}

// apply records how long the host waits after an announcement. If the drain in progress was announced without a deadline, it
// now gets one, and may have less time.
func (l HostLimit) apply(n *Node) {
	n.hostLimit = time.Duration(l)
	if n.state != StateDraining { // the next announcement uses n.hostLimit
		return
	}
	s := n.shutdown
	hostEndBefore := s.HostEnd
	for i := range s.Announced {
		a := &s.Announced[i]
		n.setMissingDeadline(a)
		if a.isOfNewestDrain() {
			s.HostEnd = times.Earlier(s.HostEnd, a.Deadline)
		}
	}
	if !s.HostEnd.Equal(hostEndBefore) {
		n.markDirty(s)
		n.drain.shortenTable(n)
	}
}

// hasPassed reports whether a deadline is known (not zero) and has passed.
func (n *Node) hasPassed(deadline time.Time) bool {
	return !deadline.IsZero() && !n.now.Before(deadline)
}

// handleAnnouncement begins a shutdown or, if one is in progress, resumes or shortens it or begins another drain of it. wallTime
// is when the announcement was received, by the wall clock.
func (n *Node) handleAnnouncement(a Announcement, wallTime time.Time) {
	s := n.shutdown
	if n.hasPassed(a.Deadline) {
		n.emit(Effect{Do: LogError, Text: fmt.Sprintf("The deadline of the shutdown announced by %q has passed: pods get 0 s", a.Origin)})
	}
	switch n.state {
	case StateNone, StateAwaitingLog:
		n.beginShutdown(a, wallTime)
	case StateAwaitingHost: // s is the previous agent's shutdown
		if n.hasTimeLeft(s) && s.mayBeOfKind(a.Kind) {
			s.announce(a)
			n.resume()
		} else { // s is over, or of another kind
			n.abandonPreviousShutdown()
			n.beginShutdown(a, wallTime)
		}
	case StateDraining:
		hostEndBefore := s.HostEnd
		s.announce(a)
		n.markDirty(s)
		if !s.HostEnd.Equal(hostEndBefore) {
			n.drain.shortenTable(n)
		}
	case StateReleased: // an announcement that is only repeated begins no other drain
		if isNewAnnouncer := s.announce(a); isNewAnnouncer {
			n.restartDrain()
		}
		n.markDirty(s)
	}
}

// saysNonePending reports whether the host has answered that no shutdown is pending.
func (p HostAnswered) saysNonePending() bool { return p.Known && (p.Event == nil || p.Event.Cancelled) }

// apply handles the host's answer whether a shutdown is pending. If one is, it counts as announced. If none is, the host's earlier
// announcements are withdrawn. If the host does not know, the previous agent's shutdown no longer waits for its answer.
func (p HostAnswered) apply(n *Node) {
	n.newestHostInput = p
	switch {
	case n.runEnded:
	case !p.Known:
		n.stopAwaitingHost()
	case p.saysNonePending():
		n.withdrawHostAnnouncements()
	default:
		n.handlePending(*p.Event, p.WallTime)
	}
}

// handlePending handles a shutdown that is pending at the host. It counts as announced, but no drain begins if its time is over or
// if its lock was released already. wallTime is when the host has answered, by the wall clock.
func (n *Node) handlePending(e source.Event, wallTime time.Time) {
	a := n.announcement(Event{Event: e, Host: true})
	mayBePrevious := n.state == StateAwaitingHost && n.shutdown.mayBeOfKind(e.Kind) // the shutdown of the previous agent
	isPreviousOver := mayBePrevious && !n.hasTimeLeft(n.shutdown)
	switch {
	case n.hasPassed(e.Deadline) || isPreviousOver:
		n.handleExpired(a)
	case n.state == StateReleased:
		n.shutdown.announce(a)
		n.markDirty(n.shutdown)
	default:
		n.handleAnnouncement(a, wallTime)
	}
}

// handleExpired handles a pending shutdown whose time is over. No drain begins. If the previous agent's shutdown awaits the host, it
// counts as this one: the lock is released, and the final statuses of its pods are sent.
func (n *Node) handleExpired(a Announcement) {
	switch n.state {
	case StateAwaitingHost: // n.shutdown is the previous agent's
		n.shutdown.announce(a)
		n.markDirty(n.shutdown)
		n.publish(n.shutdown)
		n.giveUpInterruptedKills()
		n.emit(Effect{Do: KeepLock, Until: n.now}) // without KeepLock, ReleaseLock would do nothing
		n.release(n.shutdown)
	case StateNone, StateAwaitingLog:
		n.log("The host reports a pending shutdown whose deadline has passed")
	case StateDraining, StateReleased: // that shutdown goes on
	}
}

// withdrawHostAnnouncements withdraws what the host has announced, because the host has cancelled its shutdown or has none
// pending. The shutdown is cancelled, unless Trigger has announced it too. In StateAwaitingHost this is the answer that the
// previous agent's shutdown has waited for, so it is cancelled or resumed now.
func (n *Node) withdrawHostAnnouncements() {
	switch n.state {
	case StateNone, StateAwaitingLog:
	case StateAwaitingHost:
		n.shutdown.withdraw(Announcement.isOfHost)
		n.markDirty(n.shutdown)
		n.stopAwaitingHost()
	case StateDraining, StateReleased:
		n.withdraw(Announcement.isOfHost)
	}
}

// withdraw removes the announcements of the shutdown in progress that match; wasAnnounced says that there were any. If none
// remains, the shutdown is cancelled.
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

// stopAwaitingHost ends the wait of the previous agent's shutdown for the host, which does not confirm it. If no announcement of
// the shutdown is left, it is cancelled. If it has time left, it resumes. Otherwise it ends.
func (n *Node) stopAwaitingHost() {
	switch {
	case n.state != StateAwaitingHost: // nothing waits for the host
	case len(n.shutdown.Announced) == 0:
		n.cancel()
	case n.hasTimeLeft(n.shutdown):
		n.resume()
	default:
		n.abandonPreviousShutdown()
	}
}

// apply handles a host that cannot be reached. The previous agent's shutdown awaits its answer no longer if an adopted lock shows
// that the host waits, if only Trigger has announced the shutdown, or if its time is over anyway. Otherwise it still waits: the
// host may answer later.
func (u HostUnreached) apply(n *Node) {
	n.newestHostInput = u
	if n.state != StateAwaitingHost || n.runEnded {
		return
	}
	isOfHost := slices.ContainsFunc(n.shutdown.Announced, Announcement.isOfHost)
	if u.Adopted || !isOfHost || !n.hasTimeLeft(n.shutdown) {
		n.stopAwaitingHost()
	}
}

// beginShutdown begins a new shutdown and its drain, because of the announcement a. wallTime is when a was received, by the wall
// clock.
func (n *Node) beginShutdown(a Announcement, wallTime time.Time) {
	n.lastShutdownNumber++
	s := &Shutdown{Number: n.lastShutdownNumber, Began: n.now, BeganWallTime: wallTime}
	n.shutdown = s
	s.announce(a)
	n.startDrain(s)
	n.replaceLog()
	n.emit(Effect{Do: RecordEvent, Text: textDetected})
}

// policy returns the pod policy for the kind of a shutdown. An error of the policy is reported.
func (n *Node) policy(s *Shutdown) Policy {
	n.reportPolicyError(s)
	return cmp.Or(n.policies.Of[s.Kind], SetTerminal)
}

// reportPolicyError reports what is wrong with the pod policy for the kind of a shutdown, if anything is.
func (n *Node) reportPolicyError(s *Shutdown) {
	if text := n.policies.Errors[s.Kind]; text != "" {
		n.reportError(s, text)
	}
}

// resume continues the previous agent's shutdown with the deadlines that the log has for it, or with earlier ones if the host now
// shuts down earlier.
func (n *Node) resume() {
	s := n.shutdown
	s.Ended = time.Time{}
	n.emit(Effect{Do: RecordEvent, Text: textDetected})
	n.startDrain(s)
	n.drain.shortenTable(n) // also if the log is damaged so that its timetable ends after HostEnd
}

// startDrain begins the drain of a new or resumed shutdown. Pods of earlier shutdowns that are still terminating belong to it too.
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

// restartDrain begins another drain of a shutdown whose lock is released already. It is called when a further announcer announces
// that shutdown: its announcement is the last one in s.Announced.
func (n *Node) restartDrain() {
	s := n.shutdown
	last := len(s.Announced) - 1
	s.HostEnd = s.Announced[last].Deadline
	for i := range last {
		earlier := &s.Announced[i]
		earlier.At = time.Time{} // it is not of the new drain
		if isAhead := n.now.Before(earlier.Deadline); isAhead {
			s.HostEnd = times.Earlier(s.HostEnd, earlier.Deadline)
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

// cancel cancels the shutdown. Pods that were not signalled keep running. Signalled pods keep their grace periods, and kills that
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

// clearKillPlanned records in the state log, for the next agent, that no drain plans to kill any pod any more.
func (n *Node) clearKillPlanned() {
	for _, p := range n.pods.all {
		if p.KillPlanned {
			p.KillPlanned = false
			n.markPodDirty(p)
		}
	}
}

// abandonPreviousShutdown ends the shutdown that the previous agent left unfinished, instead of resuming it. Until now this agent
// has waited for the host's answer to whether that shutdown is still in progress. The shutdown is abandoned if its time is over,
// if the host has announced another one, or if the host has not answered in time. Kills that have begun continue until their own
// deadlines, no others begin, and the agent takes a new lock.
func (n *Node) abandonPreviousShutdown() {
	s := n.shutdown
	s.Announced = nil
	if s.Ended.IsZero() { // the previous agent has not released the lock, so its drain was not over
		s.Cancelled, s.Ended = true, n.now // perhaps not every pod was told to stop, so the drain must not count as complete
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
	isAwaitLimited := n.state == StateAwaitingHost && !n.runEnded && !n.awaitHostUntil.IsZero()
	if isAwaitLimited && n.reachedOrWakeAt(n.awaitHostUntil) {
		n.abandonPreviousShutdown()
	}
	n.advanceTerminateAll()
	if isIdle := n.state == StateNone && !n.runEnded; isIdle {
		n.publishNoShutdown()
	}
}

// publishNoShutdown publishes that no shutdown is in progress: after a shutdown of this agent, and also at its start, in case the
// previous agent has published a shutdown. That shutdown may still be pending, so at the start it waits until the host has
// answered or proves to be unreachable.
func (n *Node) publishNoShutdown() {
	hasPublished := n.api.wantedState != nil
	if hasPublished || n.newestHostInput != nil {
		n.publish(nil) // nil: no shutdown is in progress
	}
}

// release ends the shutdown, stores its end, and then releases the inhibitor lock.
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
// and hostEnd is when the host shuts down (zero: not known). A host or a limit that leaves less than minDrainTime counts as if it
// left minDrainTime.
func (n *Node) tableRequest(s *Shutdown, received, hostEnd time.Time) timetable.Request {
	if !hostEnd.IsZero() {
		// A host that waits 30 s leaves slightly less when its event is received. received moves back by that, so that no grace
		// period loses a second.
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

// preliminaryTable returns the timetable that a drain has until its first list. makeFinalTable then replaces it.
func (n *Node) preliminaryTable(s *Shutdown, received time.Time) *timetable.Table {
	return timetable.New(n.tableRequest(s, received, s.HostEnd))
}

// schedule returns the configured schedule. Without one it returns a single bucket. In the final timetable the bucket is as long as
// the longest grace period of a pod, but at least defaultSeconds. In the preliminary one, for which the pods are not known, it has no
// limit in practice.
func (n *Node) schedule(isFinal bool) plan.Schedule {
	if len(n.Schedule) > 0 {
		return n.Schedule
	}
	if !isFinal {
		return plan.Schedule{{Seconds: math.MaxInt32}} // 68 years
	}
	seconds := defaultSeconds
	for _, p := range n.pods.all {
		if grace := p.grace(); grace != nil && n.mustBeKilled(p) {
			seconds = max(seconds, *grace)
		}
	}
	return plan.Schedule{{Seconds: seconds}}
}
