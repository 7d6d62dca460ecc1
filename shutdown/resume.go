package shutdown

import (
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// remembered is what a manager finds in its state files.
type remembered struct {
	progress *progress // of the last shutdown; nil: none is stored
	times    times     // as the kubelet stores them
	trouble  []error   // what could not be read
}

// remember reads the state files. Torn, foreign and unreadable ones are survived.
func (m *Manager) remember() remembered {
	var r remembered
	if m.opts.StateDir == "" {
		return r
	}
	var err error
	if r.progress, err = readProgress(m.opts.StateDir); err != nil {
		r.trouble = append(r.trouble, err)
	}
	if m.byPriority {
		if r.times, err = readTimes(m.opts.StateDir); err != nil {
			r.trouble = append(r.trouble, err)
		}
	}
	if r.progress != nil { // it is written before the host goes on, the times beside it
		r.times = times{StartTime: r.progress.Report.Started, EndTime: r.progress.Report.Ended}
	}
	return r
}

// restore shows what is remembered: the times in the metrics, the last report,
// and, if an agent of this boot was stopped within a shutdown, the refusal of
// pods, until it is known whether the shutdown goes on. It gives that shutdown.
func (m *Manager) restore(r remembered) *progress {
	if r.times != (times{}) {
		m.showTimes(r.times.StartTime, r.times.EndTime)
	}
	if r.progress != nil {
		m.setReport(r.progress.Report)
		m.ledger.stored = r.progress
		m.refused.Add(r.progress.Refused)
		m.opts.Metrics.PodsRefused(r.progress.Refused)
	} else if len(r.trouble) > 0 {
		m.setReport(Report{Errors: texts(r.trouble)})
	}
	if p := r.progress; p != nil && !p.ended() && p.BootID == m.ledger.bootID {
		m.shuttingDown.Store(true)
		return p
	}
	return nil
}

// recall is the first thing that the loop does. A shutdown that a former agent has
// left goes on at once where there is no host to ask.
func (l *loop) recall() {
	r := l.m.remember()
	if err := errors.Join(r.trouble...); err != nil {
		klog.FromContext(l.ctx).Error(err, "Shutdown state is not usable, will be replaced")
	}
	l.trouble = append(l.trouble, r.trouble...)
	l.unfinished = l.m.restore(r)
	switch {
	case l.keeper != nil:
	case l.unfinished != nil:
		l.begin(Event{}, time.Now())
	default:
		l.undo()
	}
}

// undo takes back what an earlier boot or a former agent has said about the node,
// once it is known that no shutdown goes on. That nothing is remembered does not
// mean that nothing was said: the files may be lost, or none be wanted.
func (l *loop) undo() {
	if l.said || l.current != nil || l.unfinished != nil {
		return
	}
	l.said = true
	l.announcer.publish(NodeState{})
}

// cannotTell is a host that does not say whether a shutdown is under way; one
// that a former agent has left unfinished goes on.
func (l *loop) cannotTell(received time.Time) {
	if l.unfinished != nil {
		l.announced = true
		l.begin(Event{}, received)
	}
	l.undo()
}

// forgo drops a shutdown that was cancelled while no agent was running.
func (l *loop) forgo() {
	p := l.unfinished
	if p == nil {
		return
	}
	l.unfinished = nil
	p.Report.Cancelled, p.Report.Ended = true, time.Now()
	l.m.setReport(p.Report)
	l.numbers++
	l.m.ledger.writeProgress(writing{ctx: l.ctx, calls: l.calls, shutdown: l.numbers}, func() progress { return *p })
	l.m.shuttingDown.Store(false)
	l.said = true
	l.announcer.cancelled()
}
