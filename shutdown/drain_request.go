package shutdown

import (
	"math"
	"time"
)

// drainRequest describes the shutdown that a drain is started for. It does not change.
type drainRequest struct {
	event     Event
	number    uint64    // of the shutdown; the writes of a lower number are dropped
	received  time.Time // when this agent received the event
	started   time.Time // when the first agent received it; the same as received unless resumed
	announced bool      // by the host
	local     bool      // TerminateAll: nothing is stored or published
	overtakes bool      // another drain of the same shutdown, with its hold
	epoch     uint64    // of the host lock; 0: a local drain has none
	unlockAt  time.Time // when the lock is released at the latest
	resumed   *progress // the record of a previous agent; nil: this shutdown is new
}

// resume continues the shutdown of a previous agent: with its schedule and its ends, after the
// buckets that are done.
func (q *drainRequest) resume(p *progress) {
	q.started, q.resumed = p.Report.Started, p
	if q.event.Kind == KindUnknown {
		q.event.Kind = p.Report.Kind
	}
	q.event.Origin = p.Report.Origin
}

// unusedBefore returns the pods' time that earlier buckets left unused. For a resumed drain it is
// not known, as it is not stored: it is unlimited there, and the end of each bucket bounds it.
func (q *drainRequest) unusedBefore() time.Duration {
	if q.resumed != nil {
		return math.MaxInt64
	}
	return 0
}

// outlasts reports whether the drain would take longer than another event allows.
func (d *drain) outlasts(event Event, received time.Time) bool {
	if event.Deadline.IsZero() {
		return false
	}
	ends := d.unlockAt // until there is a timetable
	if release := d.endsAt.Load(); release != nil {
		ends = *release
	}
	return d.m.host.drainEnd(event, received).Before(ends)
}
