package shutdown

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// runLoop starts the keeper, reads the inbox until ctx ends, and waits for all that was
// started. What hangs is waited for until ten seconds after the end of ctx and of the time
// of the host, and is an error then.
func (m *Manager) runLoop(ctx context.Context) error {
	defer m.settle() // whoever waits for Ready need not know that ctx has ended
	calls := &call.Group{}
	queue := newSharedQueue(ctx)
	l := &loop{m: m, ctx: ctx, calls: calls, queue: queue, announcer: m.newAnnouncer(ctx, calls, queue.Queue)}
	var keeping error
	var kept sync.WaitGroup
	var settled atomic.Int32 // of the two that Ready waits for: the folder and the host
	settle := func() {
		if settled.Add(1) == 2 {
			m.settle()
		}
	}
	if m.watches() {
		l.keeper = m.newKeeper(calls, sync.OnceFunc(settle))
		m.host.log(ctx)
	} else {
		logger := klog.FromContext(ctx)
		if m.opts.Source == nil { // as it was wished
			logger = logger.V(1)
		}
		logger.Info("No host is watched, only Trigger and TerminateAll drain", "reason", m.lock.status().Off)
	}
	if l.keeper != nil {
		kept.Go(func() { keeping = l.keeper.run(ctx) })
	}
	unlock, err := l.awaitFolder()
	if err != nil {
		l.trouble = append(l.trouble, err)
	}
	if m.state.ledger.err != nil {
		l.trouble = append(l.trouble, m.state.ledger.err)
	}
	l.recall()
	l.catchUp()
	settle()
	l.serve()
	m.inbox.phase.Store(phaseOver)
	close(m.inbox.stopped)
	queueCalls := queue.leave()
	err = m.lock.shut(ctx) // at once: the host does not wait for a killer that hangs
	until := time.Now()
	if l.current != nil {
		until = later(until, l.current.unlock)
	}
	kept.Wait()
	l.drains.Wait()
	hanging := hangingError(calls, until.Add(hangTime))
	telling := hangingError(queueCalls, until.Add(hangTime))
	locking := hangingError(&m.lock.calls, time.Now().Add(closeTime))
	return errors.Join(err, keeping, hanging, telling, locking, m.state.ledger.close(), unlock.Close())
}

func (m *Manager) newAnnouncer(ctx context.Context, calls *call.Group, queue *statuses.Queue) *announcer {
	attempt := publishAttempt
	if publish := plan.NewBudget(nil, m.opts.Plan).Publish; publish > 2*hearing {
		attempt = publish - hearing
	}
	return &announcer{
		ctx: ctx, calls: calls, queue: queue, attempt: attempt,
		reporter: m.opts.Reporter, events: m.opts.Events, node: m.opts.Node,
	}
}

func (m *Manager) newKeeper(calls *call.Group, settle func()) *keeper {
	return &keeper{
		source: m.opts.Source,
		wish:   m.host.wish(),
		short:  m.host.cuts,
		lock:   &m.lock,
		calls:  calls,
		post:   m.inbox.post,
		settle: settle,
		wake:   make(chan struct{}, 1),
	}
}

// awaitFolder locks the state folder. The host is held, and what it says is heard, while
// another agent is waited for that has the folder.
func (l *loop) awaitFolder() (unlock io.Closer, err error) {
	locked := make(chan struct{})
	go func() {
		defer close(locked)
		unlock, err = l.m.state.lock(l.ctx)
	}()
	for {
		select {
		case msg := <-l.m.inbox.messages:
			msg(l)
		case <-locked:
			return unlock, err
		}
	}
}

// catchUp does what was put off until it was known what a former agent has left.
func (l *loop) catchUp() {
	for _, do := range l.late {
		do()
	}
	l.late = nil
}

// serve does what it is told until ctx ends, and drops what a former agent has left when
// the time of that is over.
func (l *loop) serve() {
	for {
		select {
		case msg := <-l.m.inbox.messages:
			msg(l)
		case <-l.expired():
			l.forgo(false)
		case <-l.ctx.Done():
			return
		}
	}
}

// expired is when the time of a former agent's shutdown is over; nil: none is left.
func (l *loop) expired() <-chan time.Time {
	if l.expiry == nil || l.unfinished == nil {
		return nil
	}
	return l.expiry.C
}
