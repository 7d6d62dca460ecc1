package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Policy says how the statuses of killed pods are set. Its values are those of shutdown.PodPolicy.
type Policy string

// The policies.
const (
	SetTerminal Policy = "SetTerminal"
	LeaveAsIs   Policy = "LeaveAsIs"
	Delete      Policy = "Delete"
)

// IsKnown reports whether p is one of the policies above.
func (p Policy) IsKnown() bool { return p == SetTerminal || p == LeaveAsIs || p == Delete }

// Shutdown is one shutdown of the node, or one drain of TerminateAll. It is an entity of the state log
// and the head of the report.
type Shutdown struct {
	Number        int         `json:"number"`
	Kind          source.Kind `json:"kind,omitempty"`
	Origin        string      `json:"origin,omitempty"` // the host, if it announced the shutdown, otherwise the first announcer
	Began         time.Time   `json:"began"`            // when the first event was received
	BeganWallTime time.Time   `json:"wall"`             // Began by the wall clock, for people
	// Announced has the announcements that were not withdrawn. A shutdown without any is cancelled.
	Announced []Announcement `json:"announced,omitempty"`
	// HostEnd is when the host shuts down: the earliest deadline announced during the newest drain,
	// even if it was withdrawn since; zero: not known.
	HostEnd time.Time `json:"hostEnd"`
	// Timetable is that of the newest drain; nil: there was none.
	Timetable *timetable.Table `json:"timetable,omitempty"`
	// HasFinalTable says that makeFinalTable has replaced the preliminary timetable: after the first list of pods in the
	// drain, or because none came in time. After that the timetable is only shortened: no time moves later.
	HasFinalTable bool      `json:"planned,omitempty"`
	Cancelled     bool      `json:"cancelled,omitempty"`
	Ended         time.Time `json:"ended"`              // when the lock was released, or the shutdown cancelled; zero: not yet
	SendsStatuses bool      `json:"statuses,omitempty"` // the final statuses of its pods are sent to the API server
	// These three say which steps before the first bucket are over, so that they get no time when the timetable is
	// shortened or resumed. DoneBuckets is the number of buckets that are over.
	IsPrepareOver bool `json:"prepared,omitempty"`
	IsHoldOver    bool `json:"held,omitempty"`
	IsPublishOver bool `json:"published,omitempty"`
	DoneBuckets   int  `json:"done,omitempty"`
	// Errors lists failures other than those of single kills.
	Errors []string `json:"errors,omitempty"`

	isTerminateAll   bool // a drain of TerminateAll, which holds no lock and is not stored
	hasCalledPrepare bool // this agent has called Prepare; the next agent calls it again
	isReported       bool // the report of its newest drain was made
}

// Announcement is an announcement of a shutdown. A shutdown does not keep those that were withdrawn.
type Announcement struct {
	Host     bool        `json:"host,omitempty"` // from the host (Options.Source), not from Trigger
	Origin   string      `json:"origin,omitempty"`
	Kind     source.Kind `json:"kind,omitempty"`
	At       time.Time   `json:"at"`       // when it was received; zero: its drain is over, and a later announcement has begun another drain
	Deadline time.Time   `json:"deadline"` // when the host shuts down; zero: not known
}

// isOfHost reports whether the host made the announcement, rather than Trigger.
func (a Announcement) isOfHost() bool { return a.Host }

// isOfNewestDrain reports whether the announcement began the newest drain or came during it. restartDrain sets the At of earlier
// announcements to zero.
func (a Announcement) isOfNewestDrain() bool { return !a.At.IsZero() }

// hasAnnouncerOf reports whether the same announcer made both announcements.
func (a Announcement) hasAnnouncerOf(b Announcement) bool {
	return a.Host == b.Host && a.Origin == b.Origin
}

// announce adds an announcement. If its announcer has announced the shutdown before, the two announcements become one
// with the earlier deadline. isNewAnnouncer says that it has not. HostEnd moves earlier with each deadline of the newest drain.
func (s *Shutdown) announce(a Announcement) (isNewAnnouncer bool) {
	i := slices.IndexFunc(s.Announced, a.hasAnnouncerOf)
	isNewAnnouncer = i < 0
	if isNewAnnouncer {
		s.setOrigin(a)
		s.Announced = append(s.Announced, a)
	} else {
		before := s.Announced[i]
		a.At, a.Deadline, a.Kind = before.At, times.Earlier(before.Deadline, a.Deadline), cmp.Or(a.Kind, before.Kind)
		s.Announced[i] = a
	}
	if a.isOfNewestDrain() {
		s.HostEnd = times.Earlier(s.HostEnd, a.Deadline)
	}
	s.setKind()
	return isNewAnnouncer
}

// setOrigin sets the origin if a, which is about to be added, determines it: the origin is the first announcer, or the host once
// it has announced the shutdown.
func (s *Shutdown) setOrigin(a Announcement) {
	isFirstOfHost := a.Host && !slices.ContainsFunc(s.Announced, Announcement.isOfHost)
	if len(s.Announced) == 0 || isFirstOfHost {
		s.Origin = a.Origin
	}
}

// setKind sets the kind to that of the announcements. A kind that the host has announced takes precedence over Trigger's.
func (s *Shutdown) setKind() {
	s.Kind = ""
	for _, a := range s.Announced {
		if a.Kind != "" && (a.Host || s.Kind == "") {
			s.Kind = a.Kind
		}
	}
}

// withdraw removes the announcements that match; removed says that there were any. The kind of the shutdown becomes that of the
// remaining announcements. If none remains, the kind stays, for the report.
func (s *Shutdown) withdraw(match func(Announcement) bool) (removed bool) {
	before := len(s.Announced)
	s.Announced = slices.DeleteFunc(s.Announced, match)
	if len(s.Announced) > 0 {
		s.setKind()
	}
	return len(s.Announced) < before
}

// mayBeOfKind reports whether the kind of the shutdown may be the given one: the two are equal, or one of them is unknown ("").
func (s *Shutdown) mayBeOfKind(kind source.Kind) bool {
	return s.Kind == "" || kind == "" || s.Kind == kind
}

// WaitEnd returns when the newest drain stops waiting for pods, or Began if no timetable was made yet.
func (s *Shutdown) WaitEnd() time.Time {
	if s.Timetable == nil {
		return s.Began
	}
	return s.Timetable.WaitEnd()
}

// releaseBy returns the time at which the lock is released at the latest, or Began if there is no timetable.
func (s *Shutdown) releaseBy() time.Time {
	if s.Timetable == nil {
		return s.Began
	}
	return s.Timetable.ReleaseBy()
}
