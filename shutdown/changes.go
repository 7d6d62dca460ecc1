package shutdown

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// podChanged stores, beside the drain and within 100 ms, that a pod was signalled or has
// ended. The file is that of the newest drain, which a pod of an earlier one may outlive.
func (r *record) podChanged() {
	if !r.local {
		r.ledger.newest.Load().saveChange()
	}
}

// acknowledged stores that a final status is acknowledged, and has stored called then. When
// Run has ended, the last write of the ledger has it: after that one the files are another
// agent's.
func (r *record) acknowledged(stored func()) {
	if r.local {
		stored()
		return
	}
	r.ledger.onceStored(stored)
	if r.ctx.Err() != nil {
		r.ledger.newest.Load().unsaved.Store(true)
		return
	}
	r.podChanged()
}

// acknowledged stores the same of a final status of a former agent, with the newest shutdown
// of this one, if there is any. After the end of Run the files are another agent's, which
// tells the status again.
func (l *loop) acknowledged(pod *v1.Pod) {
	if l.ctx.Err() != nil {
		return
	}
	ledger := l.m.state.ledger
	ledger.acknowledged(kills.Key(pod))
	ledger.onceStored(func() { l.m.admission.finals.remove(pod) })
	if newest := ledger.newest.Load(); newest != nil {
		newest.saveChange()
		return
	}
	ledger.writeProgress(writing{ctx: l.ctx, calls: l.calls, lag: podLag}, func() progress { return *ledger.stored })
}

// saveChange stores the state beside the drain, unless a write that has not begun has it. That
// one is not replaced: the host may be held for it.
func (r *record) saveChange() {
	if r.storable() && r.unsaved.CompareAndSwap(false, true) {
		lag := podLag
		if r.storesLater() {
			lag = manyLag
		}
		r.saveBeside(lag)
	}
}

// storable tells whether there is a timetable to store. Of very many pods nothing is stored
// before the end.
func (r *record) storable() bool {
	r.mu.Lock()
	planned, over := len(r.header.Schedule) > 0, !r.over.IsZero()
	r.mu.Unlock()
	return over || planned && !r.storesLater()
}

// progress is how far the drain has come, for a write whose turn it is.
func (r *record) progress(report func() Report) progress {
	r.unsaved.Store(false)
	r.mu.Lock()
	p := r.header
	r.mu.Unlock()
	p.Report = report()
	p.Unacknowledged = slices.Concat(r.ownUntold(), r.leftRunning(), r.leftUntold())
	return p
}
