package shutdown

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

const (
	// folderTime bounds the wait for another agent to unlock the state folder, and readTime that for
	// the files.
	folderTime = 10 * time.Second
	readTime   = 5 * time.Second
	// folderWait is how long the reading of the record may take before the state is unsettled. It
	// takes a few milliseconds unless another agent has the folder or the disk hangs.
	folderWait = 100 * time.Millisecond
)

// The phases of a manager, in order.
const (
	phaseIdle int32 = iota
	phaseRunning
	phaseOver
)

// message is a task for the event loop. It runs in the loop and must not block.
type message func(*states)

// inbox passes messages to the event loop.
type inbox struct {
	messages chan message  // only the event loop receives
	stopped  chan struct{} // closed when the loop has ended
	phase    atomic.Int32
}

// begin begins the phase in which messages are heard. It returns false if it has begun before.
func (i *inbox) begin() bool { return i.phase.CompareAndSwap(phaseIdle, phaseRunning) }

// end ends it.
func (i *inbox) end() {
	i.phase.Store(phaseOver)
	close(i.stopped)
}

// in reports whether this is the phase.
func (i *inbox) in(phase int32) bool { return i.phase.Load() == phase }

// post passes a message to the loop and waits until it has run. It returns false if the loop has
// ended, or has not begun.
func (i *inbox) post(msg message) bool {
	if !i.in(phaseRunning) {
		return false
	}
	heard := make(chan struct{})
	select {
	case i.messages <- func(s *states) { defer close(heard); msg(s) }:
		<-heard
		return true
	case <-i.stopped:
		return false
	}
}

// runLoop holds the host, runs the event loop until ctx ends, and waits for everything that was
// started. Calls that hang are waited for until ten seconds after the end of ctx and of the host's
// time; the error names them then.
func (m *Manager) runLoop(ctx context.Context) error {
	defer m.ready.close() // Ready is closed even if ctx ends early
	ctx, end := context.WithCancel(ctx)
	defer end()
	calls := &call.Group{}
	fx := &effects{
		ledger: m.ledger, ctx: ctx, calls: calls, admission: &m.admission, local: &m.local, post: m.inbox.post,
		events: &nodeEvents{ctx: ctx, calls: calls, recorder: m.ledger.opts.Events, node: m.ledger.opts.Node},
		timer:  time.NewTimer(0),
	}
	<-fx.timer.C
	defer fx.timer.Stop()
	r := &reading{record: startReading(fx), loaded: make(chan struct{}), first: m.past, tried: m.ready.folderTried, inputs: m.inbox.messages}
	m.ledger.recorder.setRead(r.record.Done(), r.loaded)
	m.ledger.recorder.setOpen(ctx, m.ledger.stores())
	var hostErr error
	var hostDone sync.WaitGroup
	if m.ledger.watches() {
		fx.host = host.New(host.Options{
			Source: fx.opts.Source, Delay: fx.requestedDelay(), Shortens: fx.shortensBucket, Metrics: fx.opts.Metrics,
			Calls: calls, Listener: hostListener{post: m.inbox.post, tried: m.ready.hostTried},
		})
		m.host.Store(fx.host)
		m.ledger.logRequest(ctx)
		hostDone.Go(func() { hostErr = fx.host.Run(ctx) })
	} else {
		m.ready.hostTried()
		logger := klog.FromContext(ctx)
		if m.ledger.opts.Source == nil { // the embedder wants it so
			logger = logger.V(1)
		}
		logger.Info("No host is watched, only Trigger and TerminateAll drain", "reason", m.ledger.off)
	}
	s := &states{effects: fx, past: m.past}
	stateErr := r.serve(s)
	end()
	m.inbox.end()
	queueCalls := fx.leaveOutbox()
	until := time.Now()
	var closeErr error
	if fx.host != nil {
		closeErr = fx.host.Close(ctx) // before any wait: the host must not wait for calls that hang
	}
	if s.current != nil && s.current.end().After(until) {
		until = s.current.end()
	}
	hostDone.Wait()
	fx.drains.Wait()
	hangingErr := hangingError(calls, until.Add(hangTime))
	queueErr := hangingError(queueCalls, until.Add(hangTime))
	return errors.Join(stateErr, closeErr, hostErr, hangingErr, queueErr, m.ledger.recorder.close(ctx, until.Add(hangTime)))
}

// reading is the reading of the record, whose end is the first message that the loop handles.
type reading struct {
	record *call.Future[readRecord]
	loaded chan struct{}  // closed when the loop has handled the record
	first  *nodeShutdown  // that NewManager has found; nil: none
	tried  func()         // the state folder was tried
	inputs <-chan message // for the loop
}

// serve handles messages until the context of Run ends, and the record when it was read. Its error
// is that of the state folder where the options require one.
func (r *reading) serve(s *states) error {
	fx := s.effects
	done, late := r.record.Done(), time.NewTimer(folderWait)
	defer late.Stop()
	for {
		ready := done
		select { // the record first, so that inputs that come with it find it
		case <-ready:
		default:
			ready = nil
		}
		if ready == nil {
			select {
			case <-done:
				ready = done
			case <-late.C:
				if done != nil && s.state() == none && !s.settled {
					fx.become(unsettled)
				}
			case msg := <-r.inputs:
				msg(s)
			case <-fx.timer.C:
				s.timeOver()
			case <-fx.ctx.Done():
				return nil
			}
		}
		if ready != nil {
			done = nil
			if err := r.handle(s); err != nil {
				return err
			}
		}
	}
}

// handle handles the record.
func (r *reading) handle(s *states) error {
	fx := s.effects
	read, err := r.record.Wait(fx.ctx)
	for _, err := range append(read.errs, read.contents.Errs...) {
		klog.FromContext(fx.ctx).Error(err, "Shutdown state is not as it should be")
		if s.state() == draining || s.state() == released {
			s.current.account.addErr(err)
		} else {
			fx.errs = append(fx.errs, err)
		}
	}
	if record := read.contents.Record; record != nil {
		fx.admission.refuse(record.Refused)
		fx.opts.Metrics.PodsRefused(record.Refused)
	}
	s.recordRead(read.contents, err == nil, r.first)
	close(r.loaded)
	r.tried()
	if err != nil && fx.opts.RequireStateDir && fx.ctx.Err() == nil {
		return fmt.Errorf("the state folder is required: %w", err)
	}
	return nil
}

// readRecord is what the loop learns of the state folder.
type readRecord struct {
	contents store.Contents
	errs     []error // of the folder
}

// startReading locks the state folder and reads the files, in a goroutine. The error is that of the
// lock.
func startReading(e *effects) *call.Future[readRecord] {
	return call.Start(e.ctx, e.calls, "the reading of the shutdown state", func(ctx context.Context) (readRecord, error) {
		var r readRecord
		waiting, enough := context.WithTimeout(ctx, folderTime)
		defer enough()
		warning, err := e.store.Lock(waiting)
		for _, err := range []error{e.store.BootErr(), warning, err} {
			if err != nil {
				r.errs = append(r.errs, err)
			}
		}
		if err == nil {
			r.contents = e.store.Read(ctx, e.calls, time.Now().Add(readTime))
		}
		return r, err
	})
}

// hostListener passes what the host says to the event loop.
type hostListener struct {
	post  func(message) bool
	tried func()
}

func (h hostListener) HostEvent(event Event, received time.Time) {
	h.post(func(s *states) { s.hostEvent(event, received) })
}

func (h hostListener) HostPending(pending *Event, known bool, received time.Time) {
	h.post(func(s *states) { s.hostPending(pending, known, received) })
}

func (h hostListener) HostUnreached() { h.post(func(s *states) { s.hostUnreached() }) }

func (h hostListener) HostTried() { h.tried() }

func (h hostListener) HostCapped(err error) {
	message := textOf(err) // here, because the loop calls no code of the embedder's
	h.post(func(s *states) { s.effects.events.capped(message) })
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
