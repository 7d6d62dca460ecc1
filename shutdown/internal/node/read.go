package node

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// apply handles the log of the previous agent. Its shutdown may continue, or may be the one that has
// begun since. Otherwise it is closed, and only its pods are kept.
func (r Read) apply(n *Node) {
	previous, pods := r.entities(n.Options)
	if !r.SameBoot {
		rebase(previous, pods, n.now)
	}
	if previous != nil {
		n.lastNumber = max(n.lastNumber, previous.Number)
	}
	for _, p := range pods {
		n.lastNumber = max(n.lastNumber, p.Shutdown)
	}
	isFirst := n.shutdown == nil && n.state != StateDraining
	mayGoOn := previous != nil && r.SameBoot && !previous.Cancelled && len(previous.Announced) > 0
	switch {
	case isFirst && mayGoOn:
		n.shutdown = previous
		if n.hasTimeLeft(previous) {
			n.unsettledUntil = previous.waitEnd()
		}
		for _, p := range pods {
			n.adoptPod(p)
		}
		n.setState(StateUnsettled)
		for _, e := range n.withdrawnEarly {
			e.apply(n)
		}
		if n.hostAnswer != nil {
			n.hostAnswer.apply(n)
		}
		return
	case mayGoOn && n.state == StateDraining && n.hasTimeLeft(previous) && n.shutdown.matches(Announcement{Kind: previous.Kind}):
		n.mergePrevious(previous, pods)
	default:
		n.closePrevious(pods, r.SameBoot, isFirst)
	}
	if isFirst {
		n.shutdown = previous // for Report
		n.setState(StateNone)
	}
	n.startLog()
	n.continueKills()
}

// entities returns the shutdown and the pods of the log. The last entry of each entity counts.
func (r Read) entities(opts plan.Options) (previous *Shutdown, pods []*Pod) {
	at := map[Key]int{}
	for _, entry := range r.Entries {
		switch e := entry.(type) {
		case Shutdown:
			previous = &e
			if e.Timetable != nil {
				previous.table = timetable.Resume(*e.Timetable, timeOf, opts)
			}
		case Pod:
			if i, is := at[e.Key]; is {
				pods[i] = &e
				continue
			}
			at[e.Key] = len(pods)
			pods = append(pods, &e)
		}
	}
	return previous, pods
}

// rebase moves the times of another boot, so that the newest is now. The shutdown of another boot is
// over.
func rebase(previous *Shutdown, pods []*Pod, now time.Time) {
	var past []*time.Time
	if previous != nil {
		previous.Announced, previous.HostEnd, previous.Timetable, previous.Done = nil, time.Time{}, nil, 0
		past = append(past, &previous.Began, &previous.Ended)
	}
	for _, p := range pods {
		past = append(past, &p.Signalled, &p.Ended)
	}
	var newest time.Time
	for _, t := range past {
		newest = times.Later(newest, *t)
	}
	for _, p := range pods {
		past = append(past, &p.Deadline)
	}
	for _, t := range past {
		if !t.IsZero() {
			*t = t.Add(now.Sub(newest))
		}
	}
}

// hasTimeLeft reports whether a shutdown of the log may still wait for pods.
func (n *Node) hasTimeLeft(s *Shutdown) bool { return !s.Cancelled && n.now.Before(s.waitEnd()) }

// mergePrevious merges the shutdown of the log into the one that has begun since: its announcements and
// deadlines count too.
func (n *Node) mergePrevious(previous *Shutdown, pods []*Pod) {
	s := n.shutdown
	s.Began, s.Wall, s.Held = previous.Began, previous.Wall, s.Held || previous.Held
	s.Errors = append(previous.Errors, s.Errors...)
	for _, e := range n.withdrawnEarly {
		previous.withdraw(e.withdraws)
	}
	for _, a := range previous.Announced {
		if a.At.IsZero() {
			a.Deadline = time.Time{} // the lock was released after it
		}
		s.announce(a)
	}
	n.markDirty(s)
	for _, p := range pods {
		if p.isSignalled() {
			p.Shutdown, p.Joined = s.Number, nil
		}
		n.adoptPod(p)
	}
	n.drain.shortenTable(n)
}

// closePrevious adopts the pods of a shutdown that is over. Pods of another boot have ended; static
// ones start again, so that their final statuses are not sent. Unless keepsNumber is set, a current
// shutdown may have the same number, and the pods' numbers are cleared.
func (n *Node) closePrevious(pods []*Pod, sameBoot, keepsNumber bool) {
	for _, p := range pods {
		if !sameBoot {
			if p.Marked = false; p.isTerminating() {
				p.Ended = n.now
			}
			p.Told = p.Told || p.Static
		}
		if !keepsNumber {
			p.Shutdown, p.Joined = 0, nil
		}
		p.Meant = false
		n.adoptPod(p)
	}
}

// adoptPod adopts a pod of the log. If this agent has signalled it too, the earlier deadline counts.
func (n *Node) adoptPod(p *Pod) {
	if !p.isSignalled() && !p.Marked && !p.Meant {
		return
	}
	known := n.pods.byKey[p.Key]
	switch {
	case known == nil:
		n.pods.put(p)
		known = p
	case known.isSignalled() && p.isSignalled():
		known.Signalled, known.Granted = p.Signalled, p.Granted
		known.Deadline = times.Earlier(known.Deadline, p.Deadline)
	case known.isSignalled():
		return
	default: // it was listed
		p.Object, p.listNumber, p.update, p.isDirty = known.Object, known.listNumber, known.update, known.isDirty
		p.awaitsNotReady = known.awaitsNotReady && !p.isSignalled()
		if p.awaitsNotReady || !p.isSignalled() {
			p.pickedBy = known.pickedBy
		}
		*known = *p
	}
	n.markDirty(known)
	n.setWanted(known)
}

// continueKills continues the kills of pods that this agent or the previous one has signalled and that have
// not ended, each within its own deadline. If a drain is in progress, these pods join it first. A kill
// whose retry is already scheduled is left to that retry.
func (n *Node) continueKills() {
	if s := n.drain.shutdown; s != nil {
		n.addRunningPods(s)
	}
	for _, p := range n.pods.all {
		if p.isTerminating() && p.retryAt.IsZero() {
			n.kill(p)
		}
	}
}
