package shutdown

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
)

// folderWait is how long the reading of the record may take before the state is unsettled. It
// takes a few milliseconds unless another agent has the folder or the disk hangs.
const folderWait = 100 * time.Millisecond

// runLoop holds the host, runs the event loop until ctx ends, and waits for everything that was
// started. Calls that hang are waited for until ten seconds after the end of ctx and of the host's
// time; the error names them then.
func (m *Manager) runLoop(ctx context.Context) error {
	defer m.ready.close() // Ready is closed even if ctx ends early
	ctx, end := context.WithCancel(ctx)
	defer end()
	calls := &call.Group{}
	l := &loop{
		m: m, ctx: ctx, calls: calls, past: m.past, timer: time.NewTimer(0),
		events: &nodeEvents{ctx: ctx, calls: calls, recorder: m.opts.Events, node: m.opts.Node},
	}
	<-l.timer.C
	defer l.timer.Stop()
	m.recorder.setOpen(ctx, m.opts.StateDir != "" && m.store.BootErr() == nil)
	var hostErr error
	var hostDone sync.WaitGroup
	if m.watches() {
		l.host = m.newHost(calls)
		m.host.Store(l.host)
		m.logRequest(ctx)
		hostDone.Go(func() { hostErr = l.host.Run(ctx) })
	} else {
		m.ready.hostTried()
		logger := klog.FromContext(ctx)
		if m.opts.Source == nil { // the embedder wants it so
			logger = logger.V(1)
		}
		logger.Info("No host is watched, only Trigger and TerminateAll drain", "reason", m.off)
	}
	stateErr := l.serve()
	end()
	m.inbox.phase.Store(phaseOver)
	close(m.inbox.stopped)
	queueCalls := l.leaveOutbox()
	until := time.Now()
	var closeErr error
	if l.host != nil {
		closeErr = l.host.Close(ctx) // before any wait: the host must not wait for calls that hang
	}
	if l.current != nil && l.current.end().After(until) {
		until = l.current.end()
	}
	hostDone.Wait()
	l.drains.Wait()
	hangingErr := hangingError(calls, until.Add(hangTime))
	queueErr := hangingError(queueCalls, until.Add(hangTime))
	return errors.Join(stateErr, closeErr, hostErr, hangingErr, queueErr, m.recorder.close(ctx, time.Now().Add(hangTime)))
}

// serve handles messages until ctx ends, and the record when it was read. Its error is that of the
// state folder where the options require one.
func (l *loop) serve() error {
	read := l.startReading()
	l.m.recorder.setRead(read.Done())
	done, late := read.Done(), time.NewTimer(folderWait)
	defer late.Stop()
	for {
		select { // the record first, so that inputs that come with it find it
		case <-done:
			done = nil
			if err := l.finishReading(read); err != nil {
				return err
			}
			continue
		default:
		}
		select {
		case <-done:
			done = nil
			if err := l.finishReading(read); err != nil {
				return err
			}
		case <-late.C:
			if done != nil && l.state() == none {
				l.become(unsettled)
			}
		case msg := <-l.m.inbox.messages:
			msg(l)
		case <-l.timer.C:
			l.timeOver()
			l.clearNodeState()
		case <-l.ctx.Done():
			return nil
		}
	}
}

// finishReading handles the record when it was read, or could not be.
func (l *loop) finishReading(read *call.Future[readRecord]) error {
	r, err := read.Wait(l.ctx)
	l.folderRead(r, err == nil)
	l.m.ready.folderTried()
	if l.host == nil {
		l.clearNodeState()
	}
	if err != nil && l.m.opts.RequireStateDir && l.ctx.Err() == nil {
		return fmt.Errorf("the state folder is required: %w", err)
	}
	return nil
}

// newHost returns the door to the host, which tells the loop what it hears.
func (m *Manager) newHost(calls *call.Group) *host.Host {
	return host.New(host.Options{
		Source: m.opts.Source, Delay: m.requestedDelay(), Shortens: m.shortensBucket,
		Metrics: m.opts.Metrics, Calls: calls, Listener: hostListener{m},
	})
}

// hostListener passes what the host says to the event loop.
type hostListener struct{ m *Manager }

func (h hostListener) HostEvent(event Event, received time.Time) {
	h.m.inbox.post(func(l *loop) { l.hostEvent(event, received) })
}

func (h hostListener) HostPending(pending *Event, known bool, received time.Time) {
	h.m.inbox.post(func(l *loop) { l.hostPending(pending, known, received) })
}

func (h hostListener) HostUnreached() {
	h.m.inbox.post(func(l *loop) {
		if l.host.Adopted() {
			l.hostCannotTell(time.Now())
		}
		l.clearNodeState()
	})
}

func (h hostListener) HostTried() { h.m.ready.hostTried() }

func (h hostListener) HostCapped(err error) {
	message := textOf(err) // here, because the loop calls no code of the embedder's
	h.m.inbox.post(func(l *loop) { l.events.capped(message) })
}

// hangingError waits for the calls of a group until a time. It returns an error that names the
// calls that still run, or nil. A nil group has no calls.
func hangingError(calls *call.Group, until time.Time) error {
	if calls == nil {
		return nil
	}
	enough := make(chan struct{})
	timer := time.AfterFunc(time.Until(until), func() { close(enough) })
	defer timer.Stop()
	hanging := calls.Wait(enough)
	const most = 10
	switch n := len(hanging); {
	case n == 0:
		return nil
	case n > most:
		return fmt.Errorf("%d calls have not returned, among them %s", n, strings.Join(hanging[:most], ", "))
	default:
		return fmt.Errorf("calls that have not returned: %s", strings.Join(hanging, ", "))
	}
}
