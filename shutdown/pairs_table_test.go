//go:build linux && go1.25

package shutdown_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// pairsTable is the table of testdata/states.md for one node, so far as a run can tell its states
// apart: draining and released are both on.
type pairsTable struct {
	origin  time.Time // of the times in the story
	state   pairsState
	since   time.Time
	current *pairsShutdown // that is on or dismissed; unsettled or off: that of the record; nil: none
	all     []*pairsShutdown
}

type pairsState string

const (
	off       pairsState = "" // none
	unsettled pairsState = "unsettled"
	on        pairsState = "on"
	dismissed pairsState = "dismissed"
)

// pairsShutdown is one shutdown of the node.
type pairsShutdown struct {
	boot      *boot
	began     time.Time
	standing  map[string]time.Time // the deadlines of the announcers; the host is "host"
	changed   time.Time            // when standing has changed last
	end       time.Time            // the earliest deadline
	again     time.Time            // that of who has had it drain again after the release; zero: nobody has
	over      time.Time            // it was cancelled, or closed
	cancelled bool
	h         time.Time   // by the record
	asked     time.Time   // when a drain is over that has had all that it asks for
	joined    []time.Time // when somebody announced it who had not before
	plans     []pairsPlan
	lost      bool // its agent was killed before it was on record
	kept      bool // it was dismissed while a lock was held
	drained   bool // on record, and no host has announced it: it goes on only if somebody announces it again
}

func (t *pairsTable) become(s pairsState, current *pairsShutdown) {
	if t.current != nil && t.current != current && t.current.over.IsZero() {
		t.current.over = time.Now()
	}
	t.state, t.current, t.since = s, current, time.Now()
}

func (w *pairsWorld) begin(origin string, deadline time.Time) {
	s := &pairsShutdown{boot: w.boot, began: time.Now(), standing: map[string]time.Time{}}
	if t := w.table; t.state == dismissed {
		if end := t.current.standing["host"]; end.After(time.Now()) && end.Before(deadline) {
			deadline = end
		}
	}
	if s.end, s.asked = deadline, time.Now().Add(w.asks()); w.late && origin == "notice" {
		s.asked = deadline
	}
	w.table.all = append(w.table.all, s)
	w.table.become(on, s)
	w.join(origin, deadline, false)
	w.plan()
}

func (w *pairsWorld) join(origin string, deadline time.Time, pending bool) {
	s, now := w.table.current, time.Now()
	before, known := s.standing[origin]
	if !known || deadline.Before(before) {
		s.standing[origin], s.changed = deadline, now
	}
	if !known {
		s.joined = append(s.joined, now)
	}
	if released := now.After(s.end) || now.After(s.asked); released && !known && !pending {
		s.again, s.asked, s.h = deadline, now.Add(w.asks()), time.Time{}
		s.limitAgain()
		w.plan()
	} else if deadline.Before(s.end) {
		if s.end = deadline; origin == "host" && now.Add(w.asks()).Before(s.asked) {
			s.asked = now.Add(w.asks())
		}
		if w.planEnd().Before(s.plans[len(s.plans)-1].end) { // else the drain goes on as it was planned
			w.plan()
		}
	}
}

// limitAgain sets the end of a drain after the release: whoever stands limits how long a lock is held.
func (s *pairsShutdown) limitAgain() {
	s.end = s.again
	for _, other := range s.standing {
		if other.After(time.Now()) && other.Before(s.end) {
			s.end = other
		}
	}
}

// mayGoOn reports whether a shutdown goes on that somebody announces again.
func (s *pairsShutdown) mayGoOn() bool { return s.drained && time.Now().Before(s.h) }

// announced is an event, or with pending an answer of Pending.
func (w *pairsWorld) announced(origin string, deadline time.Time, pending bool) {
	w.tick()
	w.say("%s announces until %v (pending %v)", origin, deadline.Sub(w.table.origin), pending)
	t, past := w.table, pending && !deadline.After(time.Now())
	switch {
	case t.state == unsettled, t.state == off && t.current != nil && (pending || t.current.mayGoOn()):
		t.become(on, t.current)
		w.join(origin, deadline, pending)
		w.plan()
	case past || t.state == dismissed && pending:
	case t.state == on:
		w.join(origin, deadline, pending)
	default:
		w.begin(origin, deadline)
	}
}

// cancelled is a cancellation by the host, or its answer that nothing is pending; one by Trigger
// of an origin, or of all with "".
func (w *pairsWorld) cancelled(origin string) {
	w.tick()
	w.say("cancelled by %q", origin)
	t := w.table
	s := t.current
	cancel := func(next pairsState, current *pairsShutdown) {
		s.cancelled, s.over = true, cmp.Or(s.over, time.Now())
		t.become(next, current)
	}
	switch {
	case t.state == off && origin == "host":
		if t.current != nil && !t.current.mayGoOn() {
			t.become(off, nil)
		}
	case t.state == off, t.state == dismissed && origin != "host":
	case t.state == dismissed:
		cancel(off, nil)
	case t.state == unsettled && origin == "host":
		s.changed = time.Now()
		if delete(s.standing, "host"); len(s.standing) == 0 {
			cancel(off, nil)
			return
		}
		t.become(on, s)
		w.plan()
	case origin == "" && (t.state == unsettled || !s.standing["host"].IsZero()):
		cancel(dismissed, s)
		s.changed = time.Now()
		maps.DeleteFunc(s.standing, func(by string, _ time.Time) bool { return by != "host" })
		s.kept = len(w.agent().locks) > 0
	default:
		s.changed = time.Now()
		maps.DeleteFunc(s.standing, func(by string, _ time.Time) bool { return origin == "" || by == origin })
		if len(s.standing) == 0 && t.state == on {
			cancel(off, nil)
		} else if !s.again.IsZero() {
			s.limitAgain()
		}
	}
}

// started is the start of an agent: the state is what the record says.
func (w *pairsWorld) started(dir string) {
	r, err := store.ReadRecord(dir)
	if err != nil {
		w.violate("the record is not usable: %v", err)
	}
	t := w.table
	t.state, t.current, t.since = off, nil, time.Now()
	var s *pairsShutdown
	if r != nil && !r.Report.Started.IsZero() {
		i := slices.IndexFunc(t.all, func(s *pairsShutdown) bool { return s.began.Equal(r.Report.Started) })
		if i < 0 {
			w.violate("the record has a shutdown that began at %v, which nobody has announced", r.Report.Started.Sub(t.origin))
			return
		}
		s = t.all[i]
	}
	for _, other := range t.all {
		if newer := s == nil || other.began.After(s.began); newer && !other.lost {
			other.lost, other.over = true, cmp.Or(other.over, w.died())
			if late := w.died().Sub(other.began); late > pairsLag {
				w.violate("the agent was killed %v after the begin of a shutdown that is not on record", late)
			}
		}
	}
	if s == nil {
		return
	}
	if s.cancelled && !r.Report.Cancelled {
		if late := w.died().Sub(s.over); late > pairsLag {
			w.violate("the agent was killed %v after a cancellation that is not on record", late)
		}
		s.over, s.cancelled = time.Time{}, false
	}
	if r.BootID != w.boot.id || r.Report.Cancelled && !r.Dismissed {
		return
	}
	at := func(since time.Duration) time.Time { return w.boot.began.Add(since - time.Hour) }
	stood := s.standing
	s.h, s.standing, s.drained = at(r.H), map[string]time.Time{}, !r.Report.Ended.IsZero()
	for _, a := range r.Announcements {
		origin := a.Origin
		if a.Host {
			origin, s.drained = "host", false
		}
		s.standing[origin] = at(a.Deadline)
	}
	by := func(standing map[string]time.Time) []string { return slices.Sorted(maps.Keys(standing)) }
	if late := w.died().Sub(s.changed); late > pairsLag && !slices.Equal(by(s.standing), by(stood)) {
		w.violate("the record says that %v have announced the shutdown, and for %v it was %v", by(s.standing), late, by(stood))
	}
	if w.died().Sub(s.plans[len(s.plans)-1].at) <= pairsLag && len(s.standing) > 0 { // its reason may not be on record
		s.end = slices.MinFunc(slices.Collect(maps.Values(s.standing)), time.Time.Compare)
	}
	w.say("the record has a shutdown of %v, h %v, %v, dismissed %v", s.began.Sub(t.origin), s.h.Sub(t.origin), slices.Collect(maps.Keys(s.standing)), r.Dismissed)
	switch {
	case r.Dismissed:
		t.state = dismissed
	case time.Now().Before(s.h) && !s.drained:
		t.state = unsettled
	}
	t.current = s
}

// died returns when the last agent was killed, but for what it could not write.
func (w *pairsWorld) died() (at time.Time) {
	for _, a := range w.agents {
		if a.isDead() {
			at = a.life()
		}
	}
	return at
}

// tick does what only time does.
func (w *pairsWorld) tick() {
	t, a := w.table, w.agent()
	if t.state != unsettled || a == nil {
		return
	}
	unreached := a.started.Add(5 * time.Second)
	silent := a.contacted.IsZero() || a.contacted.After(unreached) // also if nobody has looked since
	switch s, now := t.current, time.Now(); {
	case a.adopted && silent && unreached.Before(s.h) && !now.Before(unreached):
		if len(s.standing) == 0 {
			s.cancelled = true
			t.become(off, nil)
			return
		}
		t.become(on, s)
		w.plan()
	case !now.Before(s.h):
		t.become(off, nil)
	}
}

func (s *pairsShutdown) String() string { return fmt.Sprint("shutdown of ", s.began) }

// pairsLag is how old what an agent has not yet on record may be.
const pairsLag = 150 * time.Millisecond
