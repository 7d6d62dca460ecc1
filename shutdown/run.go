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

// runLoop starts the keeper, runs the event loop until ctx ends, and waits for everything that
// was started. Calls that hang are waited for until ten seconds after the end of ctx and of the
// host's time; the error names them then.
func (m *Manager) runLoop(ctx context.Context) error {
	defer m.closeReady() // Ready is closed even if ctx ends early
	calls := &call.Group{}
	queue := newSharedQueue(ctx)
	l := &loop{m: m, ctx: ctx, calls: calls, queue: queue, announcer: m.newAnnouncer(ctx, calls, queue.Queue)}
	var keeperErr error
	var keeperDone sync.WaitGroup
	var attemptsDone atomic.Int32 // of the two that Ready waits for: the folder and the host
	attemptDone := func() {
		if attemptsDone.Add(1) == 2 {
			m.closeReady()
		}
	}
	if m.watches() {
		l.keeper = m.newKeeper(calls, sync.OnceFunc(attemptDone))
		m.host.logRequest(ctx)
	} else {
		logger := klog.FromContext(ctx)
		if m.opts.Source == nil { // the embedder wants it so
			logger = logger.V(1)
		}
		logger.Info("No host is watched, only Trigger and TerminateAll drain", "reason", m.lock.status().Off)
	}
	if l.keeper != nil {
		keeperDone.Go(func() { keeperErr = l.keeper.run(ctx) })
	}
	unlock, err := l.lockFolder()
	if err != nil {
		l.stateErrs = append(l.stateErrs, err)
	}
	if m.state.ledger.err != nil {
		l.stateErrs = append(l.stateErrs, m.state.ledger.err)
	}
	l.readState()
	l.runDeferred()
	attemptDone()
	l.serve()
	m.inbox.phase.Store(phaseOver)
	close(m.inbox.stopped)
	queueCalls := queue.leave()
	err = m.lock.releaseForGood(ctx) // before any wait: the host must not wait for calls that hang
	until := time.Now()
	if l.current != nil {
		until = maxTime(until, l.current.unlockAt)
	}
	keeperDone.Wait()
	l.drains.Wait()
	hangingErr := hangingError(calls, until.Add(hangTime))
	queueErr := hangingError(queueCalls, until.Add(hangTime))
	lockErr := hangingError(&m.lock.closing, time.Now().Add(closeTime))
	return errors.Join(err, keeperErr, hangingErr, queueErr, lockErr, m.state.ledger.close(), unlock.Close())
}

func (m *Manager) newAnnouncer(ctx context.Context, calls *call.Group, queue *statuses.Queue) *announcer {
	attempt := publishAttempt
	if publish := plan.NewBudget(nil, m.opts.Plan).Publish; publish > 2*publishLead {
		attempt = publish - publishLead
	}
	return &announcer{
		ctx: ctx, calls: calls, queue: queue, attempt: attempt,
		reporter: m.opts.Reporter, events: m.opts.Events, node: m.opts.Node,
	}
}

func (m *Manager) newKeeper(calls *call.Group, attemptDone func()) *keeper {
	return &keeper{
		source:         m.opts.Source,
		requestedDelay: m.host.requestedDelay(),
		shortensBucket: m.host.shortensBucket,
		lock:           &m.lock,
		calls:          calls,
		post:           m.inbox.post,
		attempted:      attemptDone,
		wake:           make(chan struct{}, 1),
	}
}

// lockFolder locks the state folder. While it waits for another agent, it handles messages, so
// that the host is held and its events are heard.
func (l *loop) lockFolder() (unlock io.Closer, err error) {
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

// runDeferred runs the tasks that deferUntilStateRead has postponed. Only then is it known which
// of their events count: an answer of Session.Pending that is older than a cancellation does not,
// but has closed admission when it came.
func (l *loop) runDeferred() {
	if len(l.deferred) == 0 {
		return
	}
	for _, do := range l.deferred {
		do()
	}
	l.deferred = nil
	l.m.admission.shuttingDown.Store(l.current != nil || l.unfinished != nil)
}

// serve handles messages until ctx ends. It also ends the unfinished shutdown of a previous agent
// when the time of that is over.
func (l *loop) serve() {
	for {
		select {
		case msg := <-l.m.inbox.messages:
			msg(l)
		case <-l.expired():
			l.dropUnfinished(false)
		case <-l.ctx.Done():
			return
		}
	}
}

// expired returns a channel that fires when the time of the unfinished shutdown is over; nil if
// there is none.
func (l *loop) expired() <-chan time.Time {
	if l.expiry == nil || l.unfinished == nil {
		return nil
	}
	return l.expiry.C
}
