package shutdown

import (
	"slices"
)

// reopen resumes a shutdown that a previous agent has concluded if the host still has it
// pending: that agent may have died before it released the lock. The report of that agent is
// kept. The last bucket is drained again, for pods that no agent has seen yet.
func (l *loop) reopen(pending *Event) {
	p := l.concluded
	l.concluded = nil
	switch {
	case p == nil:
	case l.current == nil && pending != nil && !pending.Cancelled && p.mayBe(pending.Kind):
		p.Done = max(min(p.Done, len(p.Schedule)-1), 0)
		l.unfinished = p
	default:
		l.closeOutlived(p)
	}
}

// closeOutlived closes the report of a shutdown of this boot that does not go on. Pods that were
// not known to have ended may keep running now, so their final statuses are removed from the
// state file: otherwise an agent of the next boot would report that this shutdown ended them.
func (l *loop) closeOutlived(p *progress) {
	ledger := l.m.state.ledger
	switch {
	case !p.ended():
		l.closeReport(p, p.Report.Cancelled)
	case slices.ContainsFunc(p.Unacknowledged, func(s finalStatus) bool { return !s.Ended }):
		ledger.writeProgress(writeRequest{ctx: l.ctx, calls: l.calls}, func() progress { return *ledger.stored })
	}
}
