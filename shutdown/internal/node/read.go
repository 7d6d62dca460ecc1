package node

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// apply takes over the shutdown and the pods that the previous agent has left in the log. There are three cases:
//
//   - The shutdown is unfinished, and this agent has had none: it awaits the host, and then continues the shutdown
//     unless the host has cancelled it.
//   - The shutdown is unfinished, and may be the one that this agent drains already: the two are merged.
//   - Otherwise the shutdown is over, or is another one than this agent's. Only its pods are taken over. LastReport returns its
//     report if this agent has had no shutdown.
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
	isUnfinished := previous != nil && r.SameBoot && !previous.Cancelled && len(previous.Announced) > 0
	hasHadNoShutdown := n.shutdown == nil // since this agent began
	if isUnfinished && hasHadNoShutdown {
		n.awaitHost(previous, pods)
		return
	}
	if isUnfinished && n.mayBeDrainingFor(previous) {
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

// awaitHost takes over the previous agent's unfinished shutdown. The host may have cancelled it in the meantime, so the shutdown
// waits until the host says whether it is still pending, or proves to be unreachable. If it has time left to wait for pods, it
// waits for the host until that time at most.
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
	// These inputs came before the log was read, and may be about this shutdown.
	for _, e := range n.cancelsBeforeLog {
		e.apply(n)
	}
	if n.newestHostInput != nil {
		n.newestHostInput.apply(n)
	}
}

// renumberPrevious raises the numbers of the shutdowns in the log, so that they differ from those of the shutdowns that this agent
// has begun before the log was read.
func (n *Node) renumberPrevious(previous *Shutdown, pods []*Pod) {
	ownShutdowns := n.lastShutdownNumber
	raise := func(number *int) {
		if *number > 0 { // 0: no shutdown
			*number += ownShutdowns
			n.lastShutdownNumber = max(n.lastShutdownNumber, *number)
		}
	}
	if previous != nil {
		raise(&previous.Number)
	}
	for _, p := range pods {
		raise(&p.SignalledBy)
		for i := range p.StillRanIn {
			raise(&p.StillRanIn[i])
		}
	}
}

// moveToThisBoot shifts all times of another boot by the same amount, because times count from the boot and cannot be compared
// with those of this boot. The latest time at which something has happened becomes now. The shutdown of another boot is over, so
// its announcements and its timetable are dropped.
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
	var latest time.Time
	for _, t := range happened {
		latest = times.Later(latest, *t)
	}
	for _, t := range append(happened, deadlines...) {
		if !t.IsZero() {
			*t = t.Add(now.Sub(latest))
		}
	}
}

// hasTimeLeft reports whether a shutdown is not cancelled and its drain would still wait for pods.
func (n *Node) hasTimeLeft(s *Shutdown) bool { return !s.Cancelled && n.now.Before(s.WaitEnd()) }

// mayBeDrainingFor reports whether this agent drains for a shutdown that may be previous, the one that the previous agent left
// unfinished. First it withdraws from previous the announcements that were cancelled before this agent had read the log. If none
// is left, previous is over, and the result is false.
func (n *Node) mayBeDrainingFor(previous *Shutdown) bool {
	if n.state != StateDraining {
		return false
	}
	n.withdrawCancelledBeforeLog(previous)
	isUnfinished := len(previous.Announced) > 0 && n.hasTimeLeft(previous)
	return isUnfinished && n.shutdown.mayBeOfKind(previous.Kind)
}

// withdrawCancelledBeforeLog withdraws those announcements of the previous agent's shutdown that Trigger or the host has cancelled
// before the log was read.
func (n *Node) withdrawCancelledBeforeLog(previous *Shutdown) {
	for _, e := range n.cancelsBeforeLog {
		previous.withdraw(e.withdraws)
	}
	if n.hostSaysNonePending() {
		previous.withdraw(Announcement.isOfHost)
	}
}

// hostSaysNonePending reports whether the newest input from the host says that no shutdown is pending.
func (n *Node) hostSaysNonePending() bool {
	switch in := n.newestHostInput.(type) {
	case Event: // a cancellation: newestHostInput is no other event
		return true
	case HostAnswered:
		return in.saysNonePending()
	default:
		return false
	}
}

// mergePrevious merges the previous agent's shutdown into the one that this agent drains already, because the two are taken for
// the same. That one begins when the previous agent's began, and also gets its errors, announcements, deadlines and pods.
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
			p.SignalledBy, p.StillRanIn = s.Number, nil // it is in the report of the merged shutdown, and in no other
		}
		n.adoptPod(p)
	}
	n.drain.shortenTable(n) // the log may have an earlier deadline
}

// adoptPodsOfEndedShutdown adopts the pods in the log, whose shutdown is over: only kills that have begun continue. If the log is of
// another boot, the pods ended with that boot. Such a pod runs again if this agent has signalled it too, and then the log's entry
// is ignored.
func (n *Node) adoptPodsOfEndedShutdown(pods []*Pod, sameBoot bool) {
	for _, p := range pods {
		known := n.pods.byKey[p.Key]
		runsAgain := !sameBoot && known != nil && known.isSignalled()
		if runsAgain {
			continue
		}
		if !sameBoot {
			p.endWithBoot(n.now)
		}
		p.KillPlanned = false
		n.adoptPod(p)
	}
}

// endWithBoot updates a pod in the log that ran in another boot: it does not run any more.
func (p *Pod) endWithBoot(now time.Time) {
	if p.isTerminating() {
		p.Ended = now
	}
	p.MayShowNotReady = false // if the API server still shows it, the next list says so
	if p.Static {
		p.StatusAccepted = true // drop the final status: it would end a new run, which has the same UID, at the API server
	}
}

// adoptPod adds a pod in the log to the known pods, if its entry is still needed. If this agent knows the pod too, it keeps the
// object of its own list. The rest depends on which agent has signalled the pod:
//
//   - Both agents: the first signal and the earlier deadline count.
//   - Only this agent: nothing changes, because the log knows less.
//   - Only the previous agent, or none: the log's pod replaces the known one.
func (n *Node) adoptPod(p *Pod) {
	if !p.isNeededByNextAgent() {
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
	case known.isSignalled():
		return
	default: // this agent has only listed it
		p.Object, p.lastListedIn, p.message, p.isDirty = known.Object, known.lastListedIn, known.message, known.isDirty
		if !p.isSignalled() { // this agent's drain may be about to kill it
			p.awaitsNotReady, p.pickedByDrain = known.awaitsNotReady, known.pickedByDrain
		}
		*known = *p
	}
	n.markPodDirty(known)
	n.queueAPIMessage(known)
}

// continueKills continues the kills of pods that this agent or the previous one has signalled and that have not ended,
// each until the pod's own deadline. If a drain is in progress, its report gets these pods.
func (n *Node) continueKills() {
	if s := n.drain.shutdown; s != nil {
		n.addRunningPodsToReport(s)
	}
	for _, p := range n.pods.all {
		isRetryScheduled := !p.retryKillAt.IsZero()
		if p.isTerminating() && !isRetryScheduled {
			n.startKill(p)
		}
	}
}
