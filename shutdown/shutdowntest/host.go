package shutdowntest

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
)

// ErrInProgress is what a host gives that is asked for a lock during a shutdown,
// as logind does.
var ErrInProgress = errors.New("the operation inhibition has been requested for is already running")

// Host is a [shutdown.Source] that does what a test tells it to. The zero value
// is a host that can be reached, is not shutting down, grants every delay and
// every lock. All methods may be called concurrently.
//
// The fields are read at each use; set them before the host is used, or with
// [Host.Script].
type Host struct {
	// Limit is the longest delay that it grants; 0: any.
	Limit time.Duration
	// Winner is the file that a capped delay names.
	Winner string
	// CapReason is joined to the error of a capped delay; nil: nothing is.
	CapReason error
	// ConnectErr, PendingErr, DelayErr and InhibitErr refuse a call each. Nil: it
	// succeeds.
	ConnectErr, PendingErr, DelayErr, InhibitErr error
	// PendingTakes is how long the host takes to say whether a shutdown is under way:
	// the answer is of the moment of the question.
	PendingTakes time.Duration
	// DelayTakes is how long it takes to change its limit.
	DelayTakes time.Duration
	// InhibitTakes is how long a lock takes to be granted; it does not end with the
	// context, as a reply on a bus does not.
	InhibitTakes time.Duration
	// Kept is a lock that the host has kept for a former agent: it is granted once,
	// in the middle of a shutdown.
	Kept bool

	mu              sync.Mutex // guards the fields above and all below
	pending         *shutdown.Event
	sessions        []*session
	calls           []string
	held            int
	released        time.Time
	requestedDelays []time.Duration
	misuse          []error
}

var _ shutdown.Source = (*Host)(nil)

// Script changes the fields of a host that is in use.
func (h *Host) Script(change func(*Host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// Announce begins a shutdown: it is pending from now on, and every session hears
// of it.
func (h *Host) Announce(event shutdown.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = &event
	h.send(event)
}

// Cancel calls the shutdown off, and every session hears of it.
func (h *Host) Cancel() {
	h.mu.Lock()
	defer h.mu.Unlock()
	event := shutdown.Event{Cancelled: true}
	if h.pending != nil {
		event.Kind = h.pending.Kind
	}
	h.pending = nil
	h.send(event)
}

// SetPending changes what is pending without a word to anyone, as a host does
// that was restarted; nil: no shutdown.
func (h *Host) SetPending(event *shutdown.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = event
}

// Lose ends all sessions, as a lost bus does. Locks stay held.
func (h *Host) Lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		s.end()
	}
	h.sessions = nil
}

// Held is the number of locks that are held.
func (h *Host) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// Released is when the last lock was given back; false: one is held, or none was.
func (h *Host) Released() (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released, h.held == 0 && !h.released.IsZero()
}

// Wishes are the delays that were asked for, in order.
func (h *Host) Wishes() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requestedDelays)
}

// Calls are the calls of the host in order: connect, pending, delay, inhibit,
// release and close. A call that fails is among them.
func (h *Host) Calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Err is what the host was treated to wrongly, joined: a lock or a session that
// was closed twice. Nil: nothing.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.misuse...)
}

// Connect is the host's part of [shutdown.Source].
func (h *Host) Connect(ctx context.Context) (shutdown.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.logCall(ctx, "connect", h.ConnectErr); err != nil {
		return nil, err
	}
	s := &session{host: h, events: make(chan shutdown.Event, 64)}
	h.sessions = append(h.sessions, s)
	return s, nil
}

// called notes a call and gives what refuses it. The mutex is held.
func (h *Host) logCall(ctx context.Context, name string, refusal error) error {
	h.calls = append(h.calls, name)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return refusal
}

// send hands an event to every session. The mutex is held; sessions have room.
func (h *Host) send(event shutdown.Event) {
	for _, s := range h.sessions {
		s.events <- event
	}
}

// grant hands out a lock. The mutex is held.
func (h *Host) grant() io.Closer {
	h.held++
	return &lock{host: h}
}

// lock is one inhibitor of the host.
type lock struct {
	host   *Host
	closed bool // guarded by the host's mutex
}

// Close gives the lock back.
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
