package shutdown

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// refuseFromRecord refuses pods from NewManager on: every pod if the record has a shutdown of
// this boot that may still go on, and each pod whose final status is on record. Run decides what
// becomes of both, and reports errors of the files.
func (m *Manager) refuseFromRecord() {
	m.state.openLedger(m.state.dir)
	r := m.state.read()
	if p := m.state.unfinished(r); p != nil {
		until := m.state.ledger.timeOf(p.HostEnd)
		m.admission.refusedUntil.Store(&until)
	}
	if _, ok := m.opts.Reporter.(StatusFlusher); ok {
		m.refusedFromRecord = m.state.carried(r)
		for _, s := range m.refusedFromRecord {
			m.admission.unacknowledgedPods.add(s.Pod, nil)
		}
	}
}

// showStored sets the metrics, the last report and the ledger to what the files contain.
func (m *Manager) showStored(r storedState) {
	if r.times != (times{}) {
		m.showTimes(0, r.times.StartTime, r.times.EndTime)
	}
	if r.progress != nil {
		m.setReport(r.progress.Report)
		stored := *r.progress
		stored.Unacknowledged = nil // the ledger carries them
		m.state.ledger.stored = &stored
		m.admission.refused.Add(r.progress.Refused)
		m.opts.Metrics.PodsRefused(r.progress.Refused)
	} else if len(r.errs) > 0 {
		m.setReport(Report{Errors: texts(r.errs)})
	}
}

// readState reads the state files once the state folder is locked, or cannot be locked. An
// unfinished shutdown is resumed at once if no host is watched. Otherwise admission is refused
// until the host says whether the shutdown goes on, or until its time is over.
func (l *loop) readState() {
	l.stateRead = true
	r := l.m.state.read()
	l.stateErrs = append(l.stateErrs, r.errs...)
	for _, err := range l.stateErrs {
		klog.FromContext(l.ctx).Error(err, "Shutdown state is not as it should be")
	}
	l.m.showStored(r)
	l.queueCarried(r)
	if l.unfinished = l.m.state.unfinished(r); l.unfinished != nil {
		l.m.admission.shuttingDown.Store(true)
		l.expiry = time.NewTimer(time.Until(l.m.state.ledger.timeOf(l.unfinished.HostEnd)))
	} else if p := r.progress; p != nil && p.BootID == l.m.state.ledger.bootID {
		if l.keeper != nil && p.ended() && !p.Report.Cancelled && time.Now().Before(l.m.state.ledger.timeOf(p.HostEnd)) {
			l.concluded = p
		} else {
			l.closeOutlived(p)
		}
	}
	if l.m.state.isOurs() { // another agent's shutdown may go on
		l.m.admission.refusedUntil.Store(nil)
	}
	switch {
	case l.keeper != nil:
	case l.unfinished != nil:
		l.beginShutdown(Event{}, time.Now())
	default:
		l.clearNodeState()
	}
}

// queueCarried sends the final statuses that a previous agent could not send. If the previous
// agent has sent some of them after NewManager read the files, their pods are admitted again.
func (l *loop) queueCarried(r storedState) {
	flusher, ok := l.m.opts.Reporter.(StatusFlusher)
	if !ok {
		return
	}
	carried, carries := l.m.state.carried(r), map[types.UID]bool{}
	l.m.state.ledger.setCarried(carried)
	for _, s := range carried {
		carries[kills.Key(s.Pod)] = true
		l.m.admission.unacknowledgedPods.add(s.Pod, func() { l.queue.Withdraw(s.Pod) })
		l.queue.Status(flusher.FlushPod, s.Pod, func() { l.carriedAcknowledged(s.Pod) })
	}
	for _, s := range l.m.refusedFromRecord {
		if !carries[kills.Key(s.Pod)] {
			l.m.admission.unacknowledgedPods.remove(s.Pod)
		}
	}
	l.m.refusedFromRecord = nil
}

// clearNodeState publishes that the node does not shut down, unless a shutdown goes on or this
// agent has published a state before. It does so even if no shutdown is on record, because the
// files of a previous agent may be lost.
func (l *loop) clearNodeState() {
	if l.deferUntilStateRead(nil, l.clearNodeState) {
		return
	}
	if l.nodeStateSent || l.current != nil || l.unfinished != nil {
		return
	}
	l.nodeStateSent = true
	l.announcer.publish(NodeState{})
}

// hostCannotTell handles a host that was reached and cannot say whether a shutdown is pending: an
// unfinished shutdown is resumed.
func (l *loop) hostCannotTell(received time.Time) {
	if l.unfinished != nil {
		l.announced = true
		l.beginShutdown(Event{}, received)
	}
	l.clearNodeState()
}

// dropUnfinished ends the unfinished shutdown of a previous agent, which was cancelled while no
// agent ran, or whose time is over.
func (l *loop) dropUnfinished(cancelled bool) {
	p := l.unfinished
	if p == nil {
		return
	}
	l.unfinished = nil
	l.closeReport(p, cancelled)
	l.m.admission.shuttingDown.Store(false)
	if cancelled {
		l.nodeStateSent = true
		l.announcer.announceCancelled()
	}
	l.clearNodeState()
}

// closeReport sets the end in the report of a previous agent's shutdown and stores it.
func (l *loop) closeReport(p *progress, cancelled bool) {
	p.Report.Cancelled, p.Report.Ended = cancelled, time.Now()
	l.m.setReport(p.Report)
	l.numbers++
	l.m.state.ledger.writeProgress(writeRequest{ctx: l.ctx, calls: l.calls, shutdown: l.numbers}, func() progress {
		closed := *p
		closed.Unacknowledged = nil // the ledger carries them
		return closed
	})
}
