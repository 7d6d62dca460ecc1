package node

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// apply takes over what a previous agent has left in the log. Its shutdown may go on, or is that which
// has begun since; otherwise it is closed, and its pods are remembered alone.
func (r Read) apply(n *Node) {
	left, pods := r.entities(n.Options)
	if !r.SameBoot {
		rebase(left, pods, n.now)
	}
	if left != nil {
		n.number = max(n.number, left.Number)
	}
	for _, p := range pods {
		n.number = max(n.number, p.Shutdown)
	}
	isFirst := n.shutdown == nil && n.state != StateDraining
	mayGoOn := left != nil && r.SameBoot && !left.Cancelled && len(left.Announced) > 0
	switch {
	case isFirst && mayGoOn:
		n.shutdown = left
		if n.isLive(left) {
			n.settleBy = left.waitEnd()
		}
		for _, p := range pods {
			n.takeOver(p)
		}
		n.set(StateUnsettled)
		for _, e := range n.takenBack {
			e.apply(n)
		}
		if n.hostSaid != nil {
			n.hostSaid.apply(n)
		}
		return
	case mayGoOn && n.state == StateDraining && n.isLive(left) && n.shutdown.fits(Announcement{Kind: left.Kind}):
		n.merge(left, pods)
	default:
		n.close(pods, r.SameBoot, isFirst)
	}
	if isFirst {
		n.shutdown = left // the report stays
		n.set(StateNone)
	}
	n.newLog()
	n.killLeft()
}

// entities returns the shutdown of the log and its pods. Of several entries of one entity the last counts.
func (r Read) entities(opts plan.Options) (left *Shutdown, pods []*Pod) {
	at := map[Key]int{}
	for _, entry := range r.Entries {
		switch e := entry.(type) {
		case Shutdown:
			left = &e
			if e.Timetable != nil {
				left.table = timetable.Resume(*e.Timetable, timeOf, opts)
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
	return left, pods
}

// rebase makes the times of another boot times of this one: the newest of them is now at the latest. The
// shutdown is over, with or without an end.
func rebase(left *Shutdown, pods []*Pod, now time.Time) {
	var past []*time.Time
	if left != nil {
		left.Announced, left.HostEnd, left.Timetable, left.Done = nil, time.Time{}, nil, 0
		past = append(past, &left.Began, &left.Ended)
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

// isLive reports whether the time of a shutdown of the log is ahead.
func (n *Node) isLive(s *Shutdown) bool { return !s.Cancelled && n.now.Before(s.waitEnd()) }

// merge makes the shutdown of the log that which has begun since: it was announced by those too who have
// announced that of the log, and their deadlines count.
func (n *Node) merge(left *Shutdown, pods []*Pod) {
	s := n.shutdown
	s.Began, s.Wall, s.Held = left.Began, left.Wall, s.Held || left.Held
	s.Errors = append(left.Errors, s.Errors...)
	for _, e := range n.takenBack {
		left.takeBack(e.takesBack)
	}
	for _, a := range left.Announced {
		if a.At.IsZero() {
			a.Deadline = time.Time{} // its time is spent
		}
		s.join(a)
	}
	n.changed(s)
	for _, p := range pods {
		if p.isSignalled() {
			p.Shutdown, p.Joined = s.Number, nil
		}
		n.takeOver(p)
	}
	n.drain.refit(n)
}

// close takes over the pods of a shutdown that does not go on. Of another boot they have all ended, and
// static ones are started again, so that their final statuses are not sent. keepsNumber says that no other shutdown may have the
// number of theirs.
func (n *Node) close(pods []*Pod, sameBoot, keepsNumber bool) {
	for _, p := range pods {
		if !sameBoot {
			if p.Marked = false; p.runs() {
				p.Ended = n.now
			}
			p.Told = p.Told || p.Static
		}
		if !keepsNumber {
			p.Shutdown, p.Joined = 0, nil
		}
		p.Meant = false
		n.takeOver(p)
	}
}

// takeOver takes over a pod of the log. Of one that this agent has signalled too, the earlier deadline
// counts.
func (n *Node) takeOver(p *Pod) {
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
		p.Object, p.listed, p.telling, p.isDirty = known.Object, known.listed, known.telling, known.isDirty
		p.isWaiting = known.isWaiting && !p.isSignalled()
		if p.isWaiting || !p.isSignalled() {
			p.picked = known.picked
		}
		*known = *p
	}
	n.changed(known)
	n.wish(known)
}

// killLeft has the pods killed that were signalled before and run, with what their deadlines leave. They are those of
// the drain that is under way too.
func (n *Node) killLeft() {
	if s := n.drain.of; s != nil {
		n.joinRunning(s)
	}
	for _, p := range n.pods.all {
		if p.runs() && p.retryAt.IsZero() {
			n.kill(p)
		}
	}
}
