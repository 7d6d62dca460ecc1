package shutdown

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

// nodeShutdown is one shutdown of the node, from its first event until it is cancelled or the host
// has gone. It outlives its drains, and on record its agents. The drains and the writer of the record
// use it beside the event loop.
type nodeShutdown struct {
	number  uint64
	account *account
	hold    *host.Hold // nil: no host is watched; set before the first drain

	mu        sync.Mutex // guards all below
	received  time.Time  // the first event, in the clock of this process; only the event loop changes it
	drains    []*drain.Drain
	standing  announcements
	h         time.Time // when a drain stops waiting; it only moves earlier
	progress  progress
	dismissed bool                // Trigger has cancelled it while the host had it pending
	published *outbox.Publication // the node state; nil: not yet published
}

// progress is how far a shutdown has come.
type progress struct {
	steps       [3]bool // by drain.Step: it has been
	begun, done int     // buckets whose kills have begun, and that are done
	table       *timetable.Table
}

// join adds an announcement; h is when a drain for it stops waiting. sooner is true if the shutdown
// has less time now than before.
func (s *nodeShutdown) join(a announcement, h time.Time) (first, sooner bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	origin := ""
	if len(s.standing) == 0 || a.host && !s.standing.ofHost() {
		origin = a.origin
	}
	first = s.standing.add(a)
	s.account.name(s.standing.kind(), origin)
	if s.h.IsZero() || h.Before(s.h) {
		sooner = !s.h.IsZero()
		s.h = h
	}
	return first, sooner
}

// takeBack removes the announcements that match. left reports whether any stands.
func (s *nodeShutdown) takeBack(match func(announcement) bool) (removed, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed = s.standing.remove(match)
	return removed, len(s.standing) > 0
}

// announced returns the announcements that stand.
func (s *nodeShutdown) announced() announcements {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.standing)
}

// live reports whether the shutdown of a former agent may go on: its time is not over.
func (s *nodeShutdown) live() bool { return time.Now().Before(s.end()) }

// awaitsTrigger reports whether a shutdown of a former agent goes on only if it is announced again,
// which a does not do; nil: nothing is announced. It was drained, and no host has announced it, so
// nobody could cancel it. A notice that is announced again has its origin, and a deadline.
func (s *nodeShutdown) awaitsTrigger(a *announcement) bool {
	standing := s.announced()
	if standing.ofHost() || s.account.head().Ended.IsZero() || a != nil && a.host {
		return false
	}
	return a == nil || !slices.ContainsFunc(standing, func(known announcement) bool {
		return known.origin == a.origin && !known.deadline.IsZero() && !a.deadline.IsZero()
	})
}

// end returns when a drain stops waiting.
func (s *nodeShutdown) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.h
}

// hostEnd returns the earliest deadline of the announcements that is still to come, or one that has
// passed; zero: nobody has named one.
func (s *nodeShutdown) hostEnd() (end time.Time) {
	now, past := time.Now(), time.Time{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.standing {
		switch {
		case a.deadline.IsZero():
		case !a.deadline.After(now):
			past = a.deadline
		case end.IsZero() || a.deadline.Before(end):
			end = a.deadline
		}
	}
	return cmp.Or(end, past)
}

// beganAt has the shutdown be one that a former agent has heard of before.
func (s *nodeShutdown) beganAt(received time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = received
}

// plan records the timetable of a drain.
func (s *nodeShutdown) plan(table timetable.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.table = &table
	if s.h.IsZero() || table.H().Before(s.h) {
		s.h = table.H()
	}
}

// reopen lets a shutdown for which the host was let go drain again, until h.
func (s *nodeShutdown) reopen(h time.Time) {
	s.account.reopen()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h, s.progress.begun, s.progress.done = h, 0, 0
}

// update changes how far the shutdown has come.
func (s *nodeShutdown) update(change func(*progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.progress)
}

// soFar returns how far the shutdown has come.
func (s *nodeShutdown) soFar() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

// dismiss records that Trigger has cancelled the shutdown while the host has it pending: only what
// the host has announced stands.
func (s *nodeShutdown) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dismissed = true
	s.standing.remove(func(a announcement) bool { return !a.host })
}

// wasDismissed reports whether dismiss was called, by this agent or a former one.
func (s *nodeShutdown) wasDismissed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dismissed
}

// setPublished records the publication of the node state.
func (s *nodeShutdown) setPublished(p *outbox.Publication) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = p
}

// publication returns what setPublished has recorded.
func (s *nodeShutdown) publication() *outbox.Publication {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.published
}

// addDrain adds a drain, which has not begun.
func (s *nodeShutdown) addDrain(d *drain.Drain) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drains = append(s.drains, d)
}

// eachDrain calls f for each drain, from the first on.
func (s *nodeShutdown) eachDrain(f func(*drain.Drain)) {
	s.mu.Lock()
	drains := slices.Clone(s.drains)
	s.mu.Unlock()
	for _, d := range drains {
		f(d)
	}
}

// content returns the record of the shutdown as it is now, with its pods.
func (s *nodeShutdown) content(clock *store.Store) store.Content {
	r, so := s.record(clock)
	return store.Content{Record: r, Pods: s.account.storedPods(so)}
}

// record returns the record without the pods, and how far the shutdown has come.
func (s *nodeShutdown) record(clock *store.Store) (store.Record, progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.progress
	r := store.Record{
		Dismissed: s.dismissed,
		T0:        clock.SinceBoot(s.received), H: clock.SinceBoot(s.h),
		Begun: p.begun, Done: p.done,
		Prepared: p.steps[drain.Prepared], Held: p.steps[drain.Held], Published: p.steps[drain.Published],
		Report: storedOutline(s.account.head()), Policy: string(s.account.podPolicy()),
	}
	for _, a := range s.standing {
		stored := store.Announcement{Host: a.host, Origin: a.origin, Kind: string(a.kind)}
		if !a.deadline.IsZero() {
			stored.Deadline = clock.SinceBoot(a.deadline)
		}
		r.Announcements = append(r.Announcements, stored)
	}
	if p.table != nil {
		r.Timetable = encodeTable(p.table, clock)
	}
	return r, p
}
