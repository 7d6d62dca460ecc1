package shutdown

import (
	"context"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

// drainRequest is what a drain is begun for. It does not change.
type drainRequest struct {
	event     Event
	number    uint64    // of the shutdown; what an earlier one wants stored is dropped
	received  time.Time // the event
	began     time.Time // the same, or when a former agent received it
	hosted    bool      // the host announced it
	local     bool      // the node does not shut down: nothing is stored or published
	overtakes bool      // another drain of the same shutdown, and its hold
	epoch     uint64    // of the lock; 0: none is concerned
	unlock    time.Time // when the lock is released, whatever becomes of the drain
	resumed   *progress // of a former agent; nil: none
}

// resume takes over where a former agent was stopped: the same schedule, the same
// ends, and none of the buckets that are done.
func (q *drainRequest) resume(p *progress) {
	q.began, q.resumed = p.Report.Started, p
	if q.event.Kind == KindUnknown {
		q.event.Kind = p.Report.Kind
	}
	q.event.Origin = p.Report.Origin
}

// leftBefore is what earlier buckets have left of their pods' time. Of a former agent it
// is not stored: the ends of the buckets bound it.
func (q *drainRequest) leftBefore() time.Duration {
	if q.resumed != nil {
		return math.MaxInt64
	}
	return 0
}

// newDrain is a drain that has not begun, without a queue of statuses and without earlier
// drains. It calls nothing of the embedder's.
func (m *Manager) newDrain(ctx context.Context, request drainRequest, calls *call.Group) *drain {
	h := newHalt(ctx)
	_, flushes := m.opts.Reporter.(StatusFlusher)
	r := &record{
		drainRequest: request,
		made:         time.Now(),
		ctx:          ctx,
		calls:        calls,
		last:         &m.last,
		halt:         h,
		roster:       kills.NewRoster(request.received),
		flushes:      flushes,
		times:        m.showTimes,
	}
	if !request.local { // those begin when it is settled which ledger there is
		r.ledger = m.state.ledger
	}
	r.header.Done = r.bucketsDone()
	told := &podStatuses{reporter: m.opts.Reporter, finals: &m.admission.finals, fail: r.fail, acknowledged: r.acknowledged, marked: map[*kills.Kill]*statuses.Mark{}}
	told.calledOff = func(f func()) {
		m.inbox.ask(func(l *loop) {
			if l.current == nil {
				f()
			}
		})
	}
	r.unacknowledged = told.unacknowledged
	killing := &killing{opts: &m.opts, calls: calls, halt: h, statuses: told, changed: r.podChanged, fail: r.fail, roster: r.roster}
	told.killed = killing.hasSignalled
	d := &drain{
		drainRequest: request,
		m:            m,
		ctx:          ctx,
		halt:         h,
		hooks:        &hooks{opts: &m.opts, ctx: ctx, calls: calls, fail: r.fail},
		statuses:     told,
		killing:      killing,
		record:       r,
		left:         request.leftBefore(),
	}
	d.over, d.conclude = call.NewFuture[Report]()
	return d
}

// outlasts tells whether the drain would go on for longer than another event
// leaves time for.
func (d *drain) outlasts(event Event, received time.Time) bool {
	if event.Deadline.IsZero() {
		return false
	}
	ends := d.unlock // as long as the drain has no timetable
	if release := d.release.Load(); release != nil {
		ends = *release
	}
	return d.m.host.release(event, received).Before(ends)
}
