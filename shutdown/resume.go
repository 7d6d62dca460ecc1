package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/statefile"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// lockTime is how long an agent waits for the one before it to leave the state folder.
const lockTime = 10 * time.Second

// remembered is what a manager finds in its state files.
type remembered struct {
	progress *progress // of the last shutdown; nil: none is stored
	times    times     // as the kubelet stores them
	trouble  []error   // what could not be read
}

// stateFolder is the folder of the state files, and the ledger that is kept in it.
type stateFolder struct {
	dir        string // "": nothing is stored
	keepsTimes bool   // the kubelet's file is kept
	byPriority bool   // and read
	boot       func() (id string, since time.Duration, err error)
	refused    func() uint64                     // the admissions refused so far
	longest    func(plan.Schedule) time.Duration // a shutdown by this schedule
	ledger     *ledger
}

// open looks at the boot. A host that cannot tell one boot from another is found out here.
func (f *stateFolder) open(dir string) { f.ledger = newLedger(dir, f.keepsTimes, f.refused, f.boot) }

// unfinished is the shutdown of this boot that a former agent has left and that may still
// go on; nil: there is none.
func (f *stateFolder) unfinished(r remembered) *progress {
	p := r.progress
	if p == nil || !p.goesOn() || p.BootID != f.ledger.bootID || !time.Now().Before(f.ledger.moment(p.HostEnd)) {
		return nil
	}
	return p
}

// lock locks the folder. Where another agent does not leave it, nothing is stored and
// nothing is resumed.
func (f *stateFolder) lock(ctx context.Context) (unlock io.Closer, err error) {
	if f.dir == "" {
		return io.NopCloser(nil), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	unlock, err = statefile.Lock(ctx, f.dir)
	if err != nil {
		f.open("")
		return io.NopCloser(nil), fmt.Errorf("failed to use the state folder, nothing is stored: %w", err)
	}
	return unlock, errors.Join(
		statefile.CheckFolder(f.dir),
		statefile.RemoveLeftovers(f.dir, timesFile, progressFile),
	)
}

// usable tells whether the folder is this agent's, or none is wanted.
func (f *stateFolder) usable() bool { return f.ledger.dir == f.dir }

// remember reads the state files. Torn, foreign and unreadable ones are survived.
func (f *stateFolder) remember() remembered {
	var r remembered
	if f.ledger.dir == "" {
		return r
	}
	var err error
	if r.progress, err = readProgress(f.ledger.dir); err == nil {
		err = f.fromTheFuture(r.progress)
	}
	if err != nil {
		r.progress, r.trouble = nil, append(r.trouble, err)
	}
	if f.byPriority {
		if r.times, err = readTimes(f.ledger.dir); err != nil {
			r.trouble = append(r.trouble, err)
		}
	}
	if r.progress != nil { // it is written before the host goes on, the times beside it
		r.times = times{StartTime: r.progress.Report.Started, EndTime: r.progress.Report.Ended}
	}
	return r
}

// futureSlack is how much longer a shutdown on record may take than this agent would need for
// its schedule: the one before may have had other options.
const futureSlack = time.Minute

// fromTheFuture says that a shutdown of this boot cannot have begun yet, because it would end
// later than one that begins now. Such a record is another machine's, or of a machine that
// was put back to an earlier state.
func (f *stateFolder) fromTheFuture(p *progress) error {
	if p == nil || !p.goesOn() || p.BootID != f.ledger.bootID {
		return nil
	}
	left := time.Until(f.ledger.moment(p.HostEnd))
	if left-futureSlack <= f.longest(p.Schedule) {
		return nil
	}
	return fmt.Errorf("shutdown state %s is not usable: its shutdown ends in %v, and cannot have begun",
		filepath.Join(f.ledger.dir, progressFile), left.Round(time.Second))
}

// refuseFirst refuses pods from the making of the manager on: all of them if a shutdown of
// this boot is on record that has not ended and whose time is not over, and those whose
// final status has still to be told. Run finds out what has become of both. What is wrong
// with the files is Run's to say.
func (m *Manager) refuseFirst() {
	m.state.open(m.state.dir)
	r := m.state.remember()
	if p := m.state.unfinished(r); p != nil {
		until := m.state.ledger.moment(p.HostEnd)
		m.admission.refusesUntil.Store(&until)
	}
	if _, ok := m.opts.Reporter.(StatusFlusher); ok {
		m.first = m.state.carried(r)
		for _, s := range m.first {
			m.admission.finals.add(s.Pod, nil)
		}
	}
}

// restore shows what is remembered: the times in the metrics and the last report.
func (m *Manager) restore(r remembered) {
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
	} else if len(r.trouble) > 0 {
		m.setReport(Report{Errors: texts(r.trouble)})
	}
}

// recall takes up what a former agent has stored. The loop calls it once the state folder is
// locked, or cannot be had. An unfinished shutdown goes on at once where there is no host to
// ask; else pods are refused until the host has told, or until the shutdown's time is over.
func (l *loop) recall() {
	l.recalled = true
	r := l.m.state.remember()
	l.trouble = append(l.trouble, r.trouble...)
	for _, err := range l.trouble {
		klog.FromContext(l.ctx).Error(err, "Shutdown state is not as it should be")
	}
	l.m.restore(r)
	l.carryOver(r)
	if l.unfinished = l.m.state.unfinished(r); l.unfinished != nil {
		l.m.admission.shuttingDown.Store(true)
		l.expiry = time.NewTimer(time.Until(l.m.state.ledger.moment(l.unfinished.HostEnd)))
	} else if p := r.progress; p != nil && p.BootID == l.m.state.ledger.bootID {
		if l.keeper != nil && p.ended() && !p.Report.Cancelled && time.Now().Before(l.m.state.ledger.moment(p.HostEnd)) {
			l.concluded = p
		} else {
			l.outlived(p)
		}
	}
	if l.m.state.usable() { // else what is on record is another agent's, and goes on
		l.m.admission.refusesUntil.Store(nil)
	}
	switch {
	case l.keeper != nil:
	case l.unfinished != nil:
		l.begin(Event{}, time.Now())
	default:
		l.undo()
	}
}

// carried are the final statuses that a former agent could not bring to the API server.
// Pods that were not known to have ended have done so with their boot; in the same one they
// may still run, and are left to those who look after them; so they are where boots cannot
// be told apart. A static pod is started again by the next boot.
func (f *stateFolder) carried(r remembered) []finalStatus {
	if r.progress == nil {
		return nil
	}
	rebooted := f.ledger.err == nil && r.progress.BootID != f.ledger.bootID
	var carried []finalStatus
	for _, s := range r.progress.Unacknowledged {
		if rebooted && !staticpod.IsOrMirrors(s.Pod) || !rebooted && s.Ended {
			s.Ended = true // with its boot at the latest; from now on this one's files say so
			carried = append(carried, s)
		}
	}
	return carried
}

// carryOver has the final statuses told that a former agent could not tell. What it could
// when it lived on after this manager was made is forgotten.
func (l *loop) carryOver(r remembered) {
	flusher, ok := l.m.opts.Reporter.(StatusFlusher)
	if !ok {
		return
	}
	finals, carried, carries := &l.m.admission.finals, l.m.state.carried(r), map[types.UID]bool{}
	l.m.state.ledger.carry(carried)
	for _, s := range carried {
		carries[kills.Key(s.Pod)] = true
		finals.add(s.Pod, func() { l.queue.Withdraw(s.Pod) })
		l.queue.Status(flusher.FlushPod, s.Pod, func() { l.acknowledged(s.Pod) })
	}
	for _, s := range l.m.first {
		if !carries[kills.Key(s.Pod)] {
			finals.remove(s.Pod)
		}
	}
	l.m.first = nil
}

// undo takes back what an earlier boot or a former agent has said about the node,
// once it is known that no shutdown goes on. That nothing is remembered does not
// mean that nothing was said: the files may be lost, or none be wanted.
func (l *loop) undo() {
	if l.putOff(nil, l.undo) {
		return
	}
	if l.said || l.current != nil || l.unfinished != nil {
		return
	}
	l.said = true
	l.announcer.publish(NodeState{})
}

// cannotTell is a host that was reached and does not say whether a shutdown is under way;
// one that a former agent has left unfinished goes on.
func (l *loop) cannotTell(received time.Time) {
	if l.unfinished != nil {
		l.announced = true
		l.begin(Event{}, received)
	}
	l.undo()
}

// forgo drops a shutdown that a former agent has left: it was cancelled while no agent was
// running, or its time is over.
func (l *loop) forgo(cancelled bool) {
	p := l.unfinished
	if p == nil {
		return
	}
	l.unfinished = nil
	l.close(p, cancelled)
	l.m.admission.shuttingDown.Store(false)
	if cancelled {
		l.said = true
		l.announcer.cancelled()
	}
	l.undo()
}

// close ends the report of a shutdown that a former agent has left.
func (l *loop) close(p *progress, cancelled bool) {
	p.Report.Cancelled, p.Report.Ended = cancelled, time.Now()
	l.m.setReport(p.Report)
	l.numbers++
	l.m.state.ledger.writeProgress(writing{ctx: l.ctx, calls: l.calls, shutdown: l.numbers}, func() progress {
		closed := *p
		closed.Unacknowledged = nil // the ledger carries them
		return closed
	})
}
