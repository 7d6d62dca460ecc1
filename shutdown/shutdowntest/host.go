package shutdowntest

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// errInProgress is the error of Inhibit during a shutdown, with logind's text.
var errInProgress = errors.New("the operation inhibition has been requested for is already running")

// Host is a fake [source.Source] and [source.Adopter]. The zero value is available, is not shutting
// down, and grants every delay and every lock. All methods may be called concurrently.
//
// Set the fields before the first use, or with [Host.Script].
type Host struct {
	// Limit is the longest delay that the host grants; 0: no limit.
	Limit time.Duration
	// SetBy is the file named in a [source.DelayCappedError].
	SetBy string
	// ConnectErr, PendingErr and InhibitErr are the errors of Connect, Pending and Inhibit, or nil.
	ConnectErr, PendingErr, InhibitErr error
	// KeptLock makes the next Inhibit succeed even during a shutdown, as if the host had kept the lock
	// of a previous agent. Inhibit resets it.
	KeptLock bool
	// StoredLock makes the next Adopt return a lock, as if a previous agent had stored it in systemd.
	// Adopt resets it.
	StoredLock bool

	mu              sync.Mutex // guards all fields
	pending         *source.Event
	sessions        []*session
	calls           []string
	held            int       // the number of held locks
	released        time.Time // when held last became 0
	requestedDelays []time.Duration
	misuse          []error // the result of Err
}

var (
	_ source.Source  = (*Host)(nil)
	_ source.Adopter = (*Host)(nil)
)

// Script changes the fields while the host is in use.
func (h *Host) Script(change func(*Host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// Announce announces a shutdown: all sessions receive the event, and it is pending for later sessions.
func (h *Host) Announce(event source.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = &event
	h.send(event)
}

// Cancel cancels the shutdown. All sessions receive the event.
func (h *Host) Cancel() {
	h.mu.Lock()
	defer h.mu.Unlock()
	event := source.Event{Cancelled: true}
	if h.pending != nil {
		event.Kind = h.pending.Kind
	}
	h.pending = nil
	h.send(event)
}

// SetPending sets the pending shutdown, or nil, without sending an event.
func (h *Host) SetPending(event *source.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = event
}

// Lose ends all sessions. Locks stay held.
func (h *Host) Lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		s.end()
	}
	h.sessions = nil
}

// Held returns the number of held locks.
func (h *Host) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// Released returns the time at which the last lock was released. It returns false if a lock is held or none
// ever was.
func (h *Host) Released() (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released, h.held == 0 && !h.released.IsZero()
}

// RequestedDelays returns the requested delays in order.
func (h *Host) RequestedDelays() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requestedDelays)
}

// Calls returns the names of the calls in order, including failed ones: connect, pending, delay,
// inhibit, release, close, and adopt if it returned a lock.
func (h *Host) Calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Err returns the joined misuses of the host: locks and sessions that were closed twice.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.misuse...)
}

// Connect implements [source.Source].
func (h *Host) Connect(ctx context.Context) (source.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.recordCall(ctx, "connect", h.ConnectErr); err != nil {
		return nil, err
	}
	s := &session{host: h, events: make(chan source.Event, 64)}
	h.sessions = append(h.sessions, s)
	return s, nil
}

// Adopt implements [source.Adopter]. If StoredLock is set, it returns a lock, as if a previous agent had
// stored it in systemd, and resets StoredLock. Otherwise it returns nil.
func (h *Host) Adopt() io.Closer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.StoredLock {
		return nil
	}
	h.StoredLock = false
	h.calls = append(h.calls, "adopt")
	return h.grant()
}

// recordCall records a call of a session, or of the host itself. It returns the error of the call: the cause of ctx if ctx has
// ended, otherwise scriptedErr, which may be nil. The caller holds the mutex.
func (h *Host) recordCall(ctx context.Context, name string, scriptedErr error) error {
	h.calls = append(h.calls, name)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return scriptedErr
}

// send sends an event to all sessions. It does not block, because their channels are buffered. The caller holds the mutex.
func (h *Host) send(event source.Event) {
	for _, s := range h.sessions {
		s.events <- event
	}
}

// grant returns a new lock. The caller holds the mutex.
func (h *Host) grant() io.Closer {
	h.held++
	return &lock{host: h}
}

// lock is an inhibitor lock of the host.
type lock struct {
	host   *Host
	closed bool // guarded by the host's mutex
}

// Close releases the lock.
func (l *lock) Close() error {
	h := l.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, "release")
	if l.closed {
		h.misuse = append(h.misuse, errors.New("a lock was closed twice"))
		return nil
	}
	l.closed = true
	h.held--
	if wasLast := h.held == 0; wasLast {
		h.released = time.Now()
	}
	return nil
}
