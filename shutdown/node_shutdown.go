package shutdown

import (
	"cmp"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

// nodeShutdown is one shutdown of the node, from its first event until it is cancelled or the host
// has gone. It outlives its drains, and on record its agents. Only the event loop uses hold and
// drains. The rest is guarded by mu, because the drains and the writer of the record use it.
type nodeShutdown struct {
	number   uint64
	received time.Time // the first event, in the clock of this process
	account  *account
	hold     *host.Hold // nil: no host is watched
	drains   []*drain.Drain

	mu        sync.Mutex // guards all below
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

// isAnnounced reports whether any announcement stands.
func (s *nodeShutdown) isAnnounced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.standing) > 0
}

// ofHost reports whether the host has announced the shutdown.
func (s *nodeShutdown) ofHost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standing.ofHost()
}

// fits reports whether this may be a shutdown of a kind.
func (s *nodeShutdown) fits(kind Kind) bool {
	own := s.account.head().Kind
	return own == KindUnknown || kind == KindUnknown || own == kind
}

// live reports whether the time of the shutdown is not over.
func (s *nodeShutdown) live() bool { return time.Now().Before(s.end()) }

// end returns when a drain stops waiting.
func (s *nodeShutdown) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.h
}

// reopen sets when a drain stops waiting, after the host was let go and has been announced to go
// once more.
func (s *nodeShutdown) reopen(h time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h = h
}

// hostEnd returns the earliest deadline of the announcements that is still to come, or one that has
// passed; zero: nobody has named one.
func (s *nodeShutdown) hostEnd() (end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, past := time.Now(), time.Time{}
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

// plan records the timetable of a drain.
func (s *nodeShutdown) plan(table timetable.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.table = &table
	if s.h.IsZero() || table.H().Before(s.h) {
		s.h = table.H()
	}
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

// nodeState returns what is published of the shutdown.
func (s *nodeShutdown) nodeState() NodeState {
	outline := s.account.head()
	return NodeState{ShuttingDown: true, Kind: outline.Kind, Since: outline.Started, Policy: s.account.podPolicy()}
}

// stopDrains stops the kills of all drains.
func (s *nodeShutdown) stopDrains(cause error) {
	for _, d := range s.drains {
		d.Stop(cause)
	}
}

// content returns the record of the shutdown as it is now.
func (s *nodeShutdown) content(clock *store.Store) store.Content {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.progress
	r := store.Record{
		BootID: clock.BootID(), Dismissed: s.dismissed,
		T0: clock.SinceBoot(s.received), H: clock.SinceBoot(s.h),
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
	return store.Content{Record: r, Pods: s.account.storedPods(p)}
}
