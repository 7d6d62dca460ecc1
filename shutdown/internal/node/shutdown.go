package node

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Policy says what becomes of the status of the pods that a shutdown has killed, in the words of
// shutdown.PodPolicy.
type Policy string

// The policies.
const (
	SetTerminal Policy = "SetTerminal"
	LeaveAsIs   Policy = "LeaveAsIs"
	Delete      Policy = "Delete"
)

// Shutdown is one shutdown of the node, or one drain of TerminateAll. It is an entity of the state log,
// and the head of the report.
type Shutdown struct {
	Number int         `json:"number"`
	Kind   source.Kind `json:"kind,omitempty"`
	Origin string      `json:"origin,omitempty"` // the host, if it has announced the shutdown, else who was first
	Began  time.Time   `json:"began"`            // when the first event was received
	Wall   time.Time   `json:"wall"`             // the same moment by the wall clock, for people
	// Announced has the announcements that stand. A shutdown without any is cancelled.
	Announced []Announcement `json:"announced,omitempty"`
	// HostEnd is when the host shuts down: the earliest deadline that was announced to the newest drain, also
	// by somebody who has taken it back since; zero: none is known.
	HostEnd time.Time `json:"hostEnd"`
	// Timetable is that of the newest drain; nil: there is none yet.
	Timetable *timetable.Stored `json:"timetable,omitempty"`
	// Planned says that the timetable was made when the first list of its drain was known, or was not to
	// be had. From then on its ends only move earlier.
	Planned   bool      `json:"planned,omitempty"`
	Cancelled bool      `json:"cancelled,omitempty"`
	Ended     time.Time `json:"ended"` // when the lock was released, or the shutdown cancelled; zero: not yet
	Policy    Policy    `json:"policy,omitempty"`
	Statuses  bool      `json:"statuses,omitempty"` // the API server is told the final statuses of its pods
	// Prepared, Held and Published say which steps before the first bucket are over, and Done is the
	// number of buckets that are, from the lowest.
	Prepared  bool `json:"prepared,omitempty"`
	Held      bool `json:"held,omitempty"`
	Published bool `json:"published,omitempty"`
	Done      int  `json:"done,omitempty"`
	// Errors lists failures other than those of single kills.
	Errors []string `json:"errors,omitempty"`

	local      bool            // it is a drain of TerminateAll, which holds no lock and is not stored
	table      timetable.Table // Timetable, with the options
	isPrepared bool            // by this agent: what the next one could start is stopped by that
	isReported bool            // its newest drain is
	isDirty    bool            // it has changed since it was stored
}

// Announcement is what one announcer has said and not taken back.
type Announcement struct {
	Host     bool        `json:"host,omitempty"` // by the session of the host, not by Trigger
	Origin   string      `json:"origin,omitempty"`
	Kind     source.Kind `json:"kind,omitempty"`
	At       time.Time   `json:"at"`       // when it was received; zero: the lock was released since, and its time is spent
	Deadline time.Time   `json:"deadline"` // when the host shuts down; zero: not known
}

// isOfHost reports whether the host has announced it.
func (a Announcement) isOfHost() bool { return a.Host }

// join adds an announcement, or replaces that of the same announcer, whose deadline only moves earlier.
// first reports whether this announcer is new.
func (s *Shutdown) join(a Announcement) (first bool) {
	i := slices.IndexFunc(s.Announced, func(b Announcement) bool { return a.Host == b.Host && a.Origin == b.Origin })
	if i >= 0 {
		if before := s.Announced[i].Deadline; a.Deadline.IsZero() || !before.IsZero() && before.Before(a.Deadline) {
			a.Deadline = before
		}
		a.At = s.Announced[i].At
		s.Announced[i] = a
	} else {
		if len(s.Announced) == 0 || a.Host && !slices.ContainsFunc(s.Announced, Announcement.isOfHost) {
			s.Origin = a.Origin
		}
		s.Announced = append(s.Announced, a)
	}
	if !a.At.IsZero() {
		s.HostEnd = times.Earlier(s.HostEnd, a.Deadline)
	}
	for _, b := range s.Announced { // a kind of the host counts before one of Trigger
		if b.Kind != "" && (b.Host || s.Kind == "") {
			s.Kind = b.Kind
		}
	}
	return i < 0
}

// takeBack removes announcements, and reports whether there were any.
func (s *Shutdown) takeBack(match func(Announcement) bool) (removed bool) {
	before := len(s.Announced)
	s.Announced = slices.DeleteFunc(s.Announced, match)
	return len(s.Announced) < before
}

// fits reports whether an announcement may be about this shutdown.
func (s *Shutdown) fits(a Announcement) bool {
	return s.Kind == "" || a.Kind == "" || s.Kind == a.Kind
}

// setTable makes a timetable that of the newest drain.
func (s *Shutdown) setTable(t timetable.Table) {
	stored := t.Store(sinceBoot)
	s.table, s.Timetable = t, &stored
}

// Table returns the timetable of the newest drain.
func (s *Shutdown) Table() timetable.Table { return s.table }

// WaitEnd returns when the newest drain stops waiting.
func (s *Shutdown) WaitEnd() time.Time { return s.waitEnd() }

// waitEnd returns when a drain of the shutdown stops waiting, and releaseBy when the lock goes at the
// latest. A shutdown without a timetable has neither.
func (s *Shutdown) waitEnd() time.Time {
	if s.Timetable == nil {
		return s.Began
	}
	return s.table.WaitEnd()
}

// end returns when the host shuts down at the latest, by the timetable.
func (s *Shutdown) end() time.Time {
	return timeOf(s.Timetable.Received + s.Timetable.Budget.End)
}

func (s *Shutdown) releaseBy() time.Time {
	if s.Timetable == nil {
		return s.Began
	}
	return s.table.Unlock()
}

// boot is the moment from which all times count.
func boot() time.Time { return time.Unix(0, 0) }

func sinceBoot(t time.Time) time.Duration { return t.Sub(boot()) }

func timeOf(since time.Duration) time.Time { return boot().Add(since) }
