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

// errInProgress is the error of a host that is asked for a lock during a shutdown. logind answers
// with this text.
var errInProgress = errors.New("the operation inhibition has been requested for is already running")

// Host is a [source.Source] and a [source.Adopter] that does what a test tells it to do. The zero
// value can be reached, is not shutting down, and grants every delay and every lock. All methods may
// be called concurrently.
//
// Each call reads the fields. Set them before the first use, or with [Host.Script].
type Host struct {
	// Limit is the longest delay that the host grants. 0: it grants any.
	Limit time.Duration
	// SetBy is the file that is named in the error of a capped delay.
	SetBy string
	// ConnectErr, PendingErr and InhibitErr are the errors of Connect, Pending and Inhibit. Nil: the
	// call succeeds.
	ConnectErr, PendingErr, InhibitErr error
	// PendingTakes is how long Pending takes. Its answer is that of the time of the call.
	PendingTakes time.Duration
	// InhibitTakes is how long Inhibit takes. It does not end with the context, like a reply on a
	// bus.
	InhibitTakes time.Duration
	// Kept makes the next Inhibit succeed even during a shutdown, as if the host had kept the
	// lock of a previous agent. That Inhibit resets it.
	Kept bool
	// Left makes the next Adopt return a lock, as if a previous agent had left it to systemd. That
	// Adopt resets it.
	Left bool

	mu              sync.Mutex // guards the fields above and all below
	pending         *source.Event
	sessions        []*session
	calls           []string
	held            int
	released        time.Time
	requestedDelays []time.Duration
	misuse          []error
}

var (
	_ source.Source  = (*Host)(nil)
	_ source.Adopter = (*Host)(nil)
)

// Script changes the fields of a host that is in use.
func (h *Host) Script(change func(*Host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// Announce begins a shutdown: every session gets the event, and later sessions find it pending.
func (h *Host) Announce(event source.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = &event
	h.send(event)
}

// Cancel cancels the shutdown. Every session gets the event.
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

// SetPending changes the pending shutdown and sends no event, like a host that was restarted.
// Nil: no shutdown is pending.
func (h *Host) SetPending(event *source.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = event
}

// Lose ends all sessions, as the loss of a bus does. Locks stay held.
func (h *Host) Lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		s.end()
	}
	h.sessions = nil
}

// Held returns the number of locks that are held.
func (h *Host) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// Released returns when the last lock was closed. It returns false if one is held or none ever
// was.
func (h *Host) Released() (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released, h.held == 0 && !h.released.IsZero()
}

// RequestedDelays returns the delays that the host was asked for, in order.
func (h *Host) RequestedDelays() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requestedDelays)
}

// Calls returns the names of the calls of the host, in order and with those that failed: connect,
// pending, delay, inhibit, release and close, and adopt if a lock was left.
func (h *Host) Calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Err returns the wrong uses of the host, joined: locks and sessions that were closed twice. Nil:
// there was none.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.misuse...)
}

// Connect implements [source.Source].
func (h *Host) Connect(ctx context.Context) (source.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.logCall(ctx, "connect", h.ConnectErr); err != nil {
		return nil, err
	}
	s := &session{host: h, events: make(chan source.Event, 64)}
	h.sessions = append(h.sessions, s)
	return s, nil
}

// Adopt implements [source.Adopter].
func (h *Host) Adopt() io.Closer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.Left {
		return nil
	}
	h.Left = false
	h.calls = append(h.calls, "adopt")
	return h.grant()
}

// logCall records a call and returns its error. The mutex is held.
func (h *Host) logCall(ctx context.Context, name string, refusal error) error {
	h.calls = append(h.calls, name)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return refusal
}

// send sends an event to every session. The mutex is held; the channels have space for it.
func (h *Host) send(event source.Event) {
	for _, s := range h.sessions {
		s.events <- event
	}
}

// grant returns a new lock. The mutex is held.
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
	if h.held--; h.held == 0 {
		h.released = time.Now()
	}
	return nil
}
