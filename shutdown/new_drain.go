package shutdown

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

// newDrain makes a drain that has not begun. The caller sets its queue of statuses and its
// earlier drains. newDrain calls no code of the embedder's.
func (m *Manager) newDrain(ctx context.Context, request drainRequest, calls *call.Group) *drain {
	h := newHalt(ctx)
	_, flushes := m.opts.Reporter.(StatusFlusher)
	r := &record{
		drainRequest: request,
		createdAt:    time.Now(),
		ctx:          ctx,
		calls:        calls,
		last:         &m.last,
		halt:         h,
		roster:       kills.NewRoster(request.received),
		flushes:      flushes,
		showTimes:    m.showTimes,
	}
	if !request.local { // a local drain may be made before Run has opened the ledger
		r.ledger = m.state.ledger
	}
	r.header.Done = r.bucketsDone()
	podStatus := &podStatuses{reporter: m.opts.Reporter, unacknowledgedPods: &m.admission.unacknowledgedPods, fail: r.fail, storeAcknowledged: r.storeAcknowledged, marked: map[*kills.Kill]*statuses.Mark{}}
	podStatus.unlessShutdown = func(f func()) {
		m.inbox.postAndWait(func(l *loop) {
			if l.current == nil {
				f()
			}
		})
	}
	r.unacknowledged = podStatus.unacknowledged
	killing := &killing{opts: &m.opts, calls: calls, halt: h, statuses: podStatus, storePodChange: r.storePodChange, fail: r.fail, roster: r.roster}
	podStatus.hasSignalled = killing.hasSignalled
	d := &drain{
		drainRequest: request,
		m:            m,
		ctx:          ctx,
		halt:         h,
		hooks:        &hooks{opts: &m.opts, ctx: ctx, calls: calls, fail: r.fail},
		statuses:     podStatus,
		killing:      killing,
		record:       r,
		unusedTime:   request.unusedBefore(),
	}
	d.done, d.complete = call.NewFuture[Report]()
	return d
}
