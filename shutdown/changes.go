package shutdown

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// storePodChange starts to store that a pod was signalled or has ended; the write is on disk
// within 100 ms. The file is that of the newest drain, because a pod may outlive its own drain.
func (r *record) storePodChange() {
	if !r.local {
		r.ledger.newest.Load().saveChange()
	}
}

// storeAcknowledged starts to store that a final status is acknowledged, and calls stored after
// that. After the end of Run the ledger's last write stores it, because the files belong to
// another agent after that write.
func (r *record) storeAcknowledged(stored func()) {
	if r.local {
		stored()
		return
	}
	r.ledger.onceStored(stored)
	if r.ctx.Err() != nil {
		r.ledger.newest.Load().unsaved.Store(true)
		return
	}
	r.storePodChange()
}

// carriedAcknowledged starts to store that the API server has acknowledged a carried final
// status, together with the newest drain of this agent if there is one. After the end of Run the
// files belong to another agent, which sends the status again.
func (l *loop) carriedAcknowledged(pod *v1.Pod) {
	if l.ctx.Err() != nil {
		return
	}
	ledger := l.m.state.ledger
	ledger.removeCarried(kills.Key(pod))
	ledger.onceStored(func() { l.m.admission.unacknowledgedPods.remove(pod) })
	if newest := ledger.newest.Load(); newest != nil {
		newest.saveChange()
		return
	}
	ledger.writeProgress(writeRequest{ctx: l.ctx, calls: l.calls, lag: podLag}, func() progress { return *ledger.stored })
}

// saveChange stores the progress while the drain goes on, unless a write that has not begun will
// store it. It does not replace that write, because the host may be held until it is done.
func (r *record) saveChange() {
	if r.storable() && r.unsaved.CompareAndSwap(false, true) {
		lag := podLag
		if r.hasManyPods() {
			lag = manyLag
		}
		r.saveProgress(lag)
	}
}

// storable reports whether there is a timetable to store. With very many pods nothing is stored
// before the end of the drain.
func (r *record) storable() bool {
	r.mu.Lock()
	planned, released := len(r.header.Schedule) > 0, !r.releasedAt.IsZero()
	r.mu.Unlock()
	return released || planned && !r.hasManyPods()
}

// progress returns the progress for a write whose turn has come.
func (r *record) progress(report func() Report) progress {
	r.unsaved.Store(false)
	r.mu.Lock()
	p := r.header
	r.mu.Unlock()
	p.Report = report()
	p.Unacknowledged = slices.Concat(r.unacknowledgedOwn(), r.unacknowledgedOfPrevious(), r.unacknowledgedBefore())
	return p
}
