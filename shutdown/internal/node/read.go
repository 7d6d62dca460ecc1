package node

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// apply handles the log of the previous agent. There are three cases:
//
//   - The log's shutdown may still be in progress, and this agent has had no shutdown: this agent continues the log's
//     shutdown. The state is StateUnsettled until the host answers.
//   - The log's shutdown may still be in progress, and this agent already drains for a shutdown that may be the same: the
//     two are merged. Announcements that were cancelled before the log was read do not count.
//   - Otherwise the log's shutdown is over or was cancelled, and its pods are kept. If this agent has had no shutdown,
//     LastReport still reports that of the log.
func (r LogRead) apply(n *Node) {
	entries := r.Entries.Clone()
	previous, pods := entries.Shutdown, entries.Pods
	if previous != nil && previous.Timetable != nil {
		previous.Timetable = previous.Timetable.WithOptions(n.Options)
	}
	n.renumberPrevious(previous, pods)
	if !r.SameBoot {
		moveToThisBoot(previous, pods, n.now)
	}
	n.awaitsLog = false
	hasHadNoShutdown := n.shutdown == nil // begun by this agent
	mayContinue := previous != nil && r.SameBoot && !previous.Cancelled && len(previous.Announced) > 0
	if hasHadNoShutdown && mayContinue {
		n.awaitHost(previous, pods)
		return
	}
	mayBeThisDrain := false
	if mayContinue && n.state == StateDraining {
		n.withdrawCancelledBeforeLog(previous)
		isSameKind := n.shutdown.matches(Announcement{Kind: previous.Kind})
		mayBeThisDrain = isSameKind && len(previous.Announced) > 0 && n.hasTimeLeft(previous)
	}
	if mayBeThisDrain {
		n.mergePrevious(previous, pods)
	} else {
		n.adoptPodsOfEndedShutdown(pods, r.SameBoot)
	}
	if hasHadNoShutdown {
		n.shutdown = previous // for LastReport
		n.setState(StateNone)
	}
	n.replaceLog()
	n.continueKills()
}

// awaitHost takes over the log's unfinished shutdown. It enters StateUnsettled, which lasts until the host says whether this
// shutdown is still pending, or proves to be unreachable. If the drain still has time to wait for pods (hasTimeLeft),
// StateUnsettled ends with that time (WaitEnd) at the latest. The new log has the shutdown and its pods, for the next agent.
// The cancellations by Trigger and the newest answer about the host that came before the log was read may be about this
// shutdown, so they are applied again.
func (n *Node) awaitHost(previous *Shutdown, pods []*Pod) {
	n.shutdown = previous
	if n.hasTimeLeft(previous) {
		n.awaitHostUntil = previous.WaitEnd()
	}
	for _, p := range pods {
		n.adoptPod(p)
	}
	n.setState(StateAwaitingHost)
	n.replaceLog()
	for _, e := range n.cancelsBeforeLog {
		e.apply(n)
	}
	if n.newestHostInput != nil {
		n.newestHostInput.apply(n)
	}
}

// renumber gives the shutdowns in the log other numbers than those of the shutdowns that this agent has begun before it has
// read the log.
func (n *Node) renumberPrevious(previous *Shutdown, pods []*Pod) {
	ownShutdowns := n.lastShutdownNumber
	shift := func(number *int) {
		if *number > 0 {
			*number += ownShutdowns
			n.lastShutdownNumber = max(n.lastShutdownNumber, *number)
		}
	}
	if previous != nil {
		shift(&previous.Number)
	}
	for _, p := range pods {
		shift(&p.SignalledBy)
		for i := range p.StillRanIn {
			shift(&p.StillRanIn[i])
		}
	}
}

// moveToThisBoot shifts all times of another boot by the same amount, because times of two boots cannot be compared. The
// latest time at which something has happened becomes now. The shutdown of another boot is over, and its timetable is
// dropped.
func moveToThisBoot(previous *Shutdown, pods []*Pod, now time.Time) {
	var happened []*time.Time
	deadlines := make([]*time.Time, 0, len(pods))
	if previous != nil {
		previous.Announced, previous.HostEnd, previous.Timetable, previous.DoneBuckets = nil, time.Time{}, nil, 0
		happened = append(happened, &previous.Began, &previous.Ended)
	}
	for _, p := range pods {
		happened = append(happened, &p.Signalled, &p.Ended)
		deadlines = append(deadlines, &p.Deadline)
	}
	var newest time.Time
	for _, t := range happened {
		newest = times.Later(newest, *t)
	}
	for _, t := range append(happened, deadlines...) {
		if !t.IsZero() {
			*t = t.Add(now.Sub(newest))
		}
	}
}

// hasTimeLeft reports whether a shutdown is not cancelled and its drain would still wait for pods.
func (n *Node) hasTimeLeft(s *Shutdown) bool { return !s.Cancelled && n.now.Before(s.WaitEnd()) }

// withdrawCancelled withdraws those announcements of the log's shutdown that Trigger or the host has cancelled before the log
// was read.
func (n *Node) withdrawCancelledBeforeLog(previous *Shutdown) {
	for _, e := range n.cancelsBeforeLog {
		previous.withdraw(e.withdraws)
	}
	if n.hostSaysNonePending() {
		previous.withdraw(Announcement.isOfHost)
	}
}

// hostHasNonePending reports whether the host's newest answer is that no shutdown is pending.
func (n *Node) hostSaysNonePending() bool {
	switch answer := n.newestHostInput.(type) {
	case Event: // hostAnswer is only an event that cancels
		return true
	case HostAnswered:
		return answer.saysNonePending()
	default:
		return false
	}
}

// mergePrevious merges the shutdown of the log into the one that this agent drains already, because they are the same. It gets
// the start of the log's shutdown, and also its errors, announcements, deadlines and pods.
func (n *Node) mergePrevious(previous *Shutdown, pods []*Pod) {
	s := n.shutdown
	s.Began, s.BeganWallTime, s.IsHoldOver = previous.Began, previous.BeganWallTime, s.IsHoldOver || previous.IsHoldOver
	s.Errors = append(previous.Errors, s.Errors...)
	for _, a := range previous.Announced {
		if !a.isOfNewestDrain() {
			a.Deadline = time.Time{} // so that it does not shorten the drain in progress
		}
		s.announce(a)
	}
	n.markDirty(s)
	for _, p := range pods {
		if p.isSignalled() {
			p.SignalledBy, p.StillRanIn = s.Number, nil // only the merged shutdown reports it
		}
		n.adoptPod(p)
	}
	n.drain.shortenTable(n) // the log may have an earlier deadline
}

// closePrevious adopts the pods of the log's shutdown, which is over. No drain plans to kill them any more (KillPlanned), so
// only kills that have begun continue. If the log is of another boot, its pods ended with that boot. A pod that this agent has
// signalled itself has run again since: the log's entry is ignored.
func (n *Node) adoptPodsOfEndedShutdown(pods []*Pod, sameBoot bool) {
	for _, p := range pods {
		known := n.pods.byKey[p.Key]
		hasRunAgain := !sameBoot && known != nil && known.isSignalled()
		if hasRunAgain {
			continue
		}
		if !sameBoot {
			p.endWithBoot(n.now)
		}
		p.KillPlanned = false
		n.adoptPod(p)
	}
}

// endWithBoot updates a pod of the log that ran in another boot, and so does not run any more. If it was terminating, it has
// ended. An earlier NotReady is forgotten; a list that still shows it sets MaybeNotReady again (updateFromList). The final status
// of a static pod is dropped, as if the API server had accepted it: the pod may run again with the same UID, and the status would
// end the new run at the API server.
func (p *Pod) endWithBoot(now time.Time) {
	p.MayShowNotReady = false
	if p.isTerminating() {
		p.Ended = now
	}
	p.StatusAccepted = p.StatusAccepted || p.Static
}

// adoptPod adds a pod of the log to the known pods, if its entry is still needed (isLogged). If this agent knows the pod too, it
// keeps the object of its own list. The rest depends on which agent has signalled the pod:
//
//   - Both agents: the first signal and the earlier deadline count.
//   - Only this agent: nothing changes, because the log knows less.
//   - Only the previous agent, or none: the log's pod replaces the known one.
func (n *Node) adoptPod(p *Pod) {
	if !p.isLogged() {
		return
	}
	known := n.pods.byKey[p.Key]
	switch {
	case known == nil:
		n.pods.put(p)
		known = p
	case known.isSignalled() && p.isSignalled():
		known.Signalled, known.GrantedSeconds = p.Signalled, p.GrantedSeconds
		known.Deadline = times.Earlier(known.Deadline, p.Deadline)
	case known.isSignalled(): // this agent knows more than the log
		return
	default: // this agent has only listed it
		p.Object, p.lastListedIn, p.message, p.isDirty = known.Object, known.lastListedIn, known.message, known.isDirty
		p.awaitsNotReady = known.awaitsNotReady && !p.isSignalled()
		if !p.isSignalled() { // this agent's drain may have picked it already
			p.pickedByDrain = known.pickedByDrain
		}
		*known = *p
	}
	n.markPodDirty(known)
	n.queueWantedMessage(known)
}

// continueKills continues the kills of pods that this agent or the previous one has signalled and that have not ended,
// each until the pod's own deadline. If a drain is in progress, its report gets these pods. A kill whose retry is
// scheduled is left to that retry.
func (n *Node) continueKills() {
	if s := n.drain.shutdown; s != nil {
		n.addRunningPodsToReport(s)
	}
	for _, p := range n.pods.all {
		if p.isTerminating() && p.retryKillAt.IsZero() {
			n.startKill(p)
		}
	}
}
