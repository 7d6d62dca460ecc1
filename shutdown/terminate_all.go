package shutdown

import (
	"context"
	"errors"
	"slices"
	"time"
)

// TerminateAll is the drain without a shutdown of the node: for an agent that
// stops its pods when it is stopped itself. It goes through the same buckets with
// the same time beside the kills, kills with the same policy (that of [KindUnknown]), and gives
// the report, with what went wrong beside the pods as its error. No pod is
// admitted from its call on, for good.
//
// It may be called before Run, during it and after it. The host is neither held
// for it nor let go, nothing is stored, and the node's state is not published. A
// shutdown that is under way is waited for instead, and one that begins meanwhile
// joins it. The end of ctx stops the kills and the waiting, except for calls that
// ignore their context; what was waited for instead has no report then.
func (m *Manager) TerminateAll(ctx context.Context) (Report, error) {
	m.terminating.Store(true)
	d := m.newDrain(ctx, Event{Origin: "TerminateAll"}, time.Now())
	d.local = true
	d.choosePolicy()
	current, listed := m.enlist(d)
	if current != nil {
		return current.wait(ctx)
	}
	d.run()
	if listed {
		m.post(func(l *loop) { l.forget(d) })
	}
	return d.final, errors.Join(errors.Join(d.errs...), context.Cause(ctx))
}

// enlist lets the loop, if it runs, know of a drain, so that shutdowns join it and
// it joins those that still end. It gives the shutdown that is under way; nil:
// there is none.
func (m *Manager) enlist(d *drain) (current *drain, listed bool) {
	if m.phase.Load() != phaseRunning {
		return nil, false
	}
	heard := make(chan struct{})
	listed = m.post(func(l *loop) {
		defer close(heard)
		if current = l.current; current == nil {
			d.earlier = slices.Clone(l.earlier)
			l.earlier = slices.Insert(l.earlier, 0, d)
		}
	})
	if listed {
		<-heard
	}
	return current, listed
}

// wait waits for the end of a drain and gives its report; none if ctx ends before.
func (d *drain) wait(ctx context.Context) (Report, error) {
	select {
	case <-d.over:
		return d.final, errors.Join(d.errs...)
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	}
}
