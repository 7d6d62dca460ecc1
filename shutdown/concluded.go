package shutdown

import (
	"slices"
)

// reopen takes up a shutdown that a former agent has brought to its end, if it is still
// pending: that agent may have been killed before it let the host go. It keeps its report, and
// has its last bucket again, for pods that nobody has seen before.
func (l *loop) reopen(pending *Event) {
	p := l.concluded
	l.concluded = nil
	switch {
	case p == nil:
	case l.current == nil && pending != nil && !pending.Cancelled && p.mayBe(pending.Kind):
		p.Done = max(min(p.Done, len(p.Schedule)-1), 0)
		l.unfinished = p
	default:
		l.outlived(p)
	}
}

// outlived closes the report of a shutdown of this boot that does not go on. Pods that were
// not known to have ended may run again from now on; they are removed from what is stored, so
// that no agent of the next boot reports that this shutdown has ended them.
func (l *loop) outlived(p *progress) {
	ledger := l.m.state.ledger
	switch {
	case !p.ended():
		l.close(p, p.Report.Cancelled)
	case slices.ContainsFunc(p.Unacknowledged, func(s finalStatus) bool { return !s.Ended }):
		ledger.writeProgress(writing{ctx: l.ctx, calls: l.calls}, func() progress { return *ledger.stored })
	}
}
