package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

var (
	errRefused    = errors.New("refused")
	errInProgress = errors.New("a shutdown is under way")
)

// fault is what goes wrong in a call of the script. With the zero value nothing goes wrong.
type fault struct {
	delay           time.Duration // how long the call takes
	endsWithContext bool          // the call returns at the end of its context, even before delay is over
	hangs           bool          // the call does not return until unblock
	err             error
	panics          bool
	after           func() // called before the call returns; nil: nothing is called
}

// script is a source controlled by a test.
type script struct {
	mu                   sync.Mutex
	blocked              chan struct{}                    // closed by unblock
	faults               func(method string, n int) fault // of the nth call of a method, from 1; nil: none
	pending              *source.Event
	pendingUnknown       bool          // Pending returns errors.ErrUnsupported
	grantsNextInShutdown bool          // the next Inhibit succeeds although a shutdown is pending
	leftLock             bool          // the next Adopt returns a lock, which the previous agent left
	returnsNil           string        // the method that returns neither a value nor an error
	limit                time.Duration // 0: any delay is granted
	limitFile            string        // the file that has the limit; "": not known
	capWithoutError      bool          // a grant that is less than requested comes without an error
	calls                []string      // the methods that were called, in order
	counts               map[string]int
	sessions             []*conn
	locks                []*lock
	held                 int       // how many locks are held
	twoHeldSince         time.Time // since when two locks are held
	misuse               []string  // wrong uses of the source, such as a lock that is closed twice
	faulted              bool      // a fault was injected
	allowsTwoLocks       bool      // two locks may be held at a time, because the Close of one of them hangs
}

// newScript returns a source of a host without faults.
func newScript() *script { return &script{blocked: make(chan struct{}), counts: map[string]int{}} }

// set changes the script while a Host uses it.
func (s *script) set(change func(*script)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// unblock makes hanging calls return.
func (s *script) unblock() {
	s.set(func(s *script) {
		close(s.blocked)
		s.blocked = make(chan struct{})
	})
}

// everyCallOf returns a change of the script: each call of a method has the same fault.
func everyCallOf(method string, f fault) func(*script) {
	return func(s *script) {
		s.faults = func(called string, _ int) fault {
			if called == method {
				return f
			}
			return fault{}
		}
	}
}

// callNumber returns a change of the script: one call of a method has a fault, the first (1) or a later one.
func callNumber(number int, method string, f fault) func(*script) {
	return func(s *script) {
		s.faults = func(called string, n int) fault {
			if called == method && n == number {
				return f
			}
			return fault{}
		}
	}
}

// step records a call, does what its fault says (hang, wait, panic), and returns the error of the fault.
func (s *script) step(ctx context.Context, method string) error {
	s.mu.Lock()
	s.calls = append(s.calls, method)
	s.counts[method]++
	var f fault
	if s.faults != nil {
		f = s.faults(method, s.counts[method])
	}
	s.faulted = s.faulted || f.hangs || f.panics || f.err != nil || f.delay > 0
	unblocked := s.blocked
	s.mu.Unlock()
	if f.hangs {
		<-unblocked
	}
	if f.delay > 0 {
		var cancelled <-chan struct{}
		if f.endsWithContext && ctx != nil {
			cancelled = ctx.Done()
		}
		select {
		case <-time.After(f.delay):
		case <-cancelled:
			return context.Cause(ctx)
		}
	}
	if f.after != nil {
		f.after()
	}
	if f.panics {
		panic("a fault of the script")
	}
	return f.err
}

// Connect returns a new session, unless a fault is injected.
func (s *script) Connect(ctx context.Context) (source.Session, error) {
	if err := s.step(ctx, "connect"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.returnsNil == "connect" {
		return nil, nil //nolint:nilnil // a source that is wrong
	}
	c := &conn{script: s, events: make(chan source.Event, 64), ctx: ctx}
	s.sessions = append(s.sessions, c)
	return c, nil
}

// adopting is a script that is also a source.Adopter.
type adopting struct{ *script }

// Adopt returns the previous agent's lock once, if it has left one.
func (a adopting) Adopt() io.Closer {
	if a.step(nil, "adopt") != nil { //nolint:staticcheck // Adopt has no context
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.leftLock {
		return nil
	}
	a.leftLock = false
	return a.grant()
}

// conn is a session with the scripted host.
type conn struct {
	script *script
	events chan source.Event
	ctx    context.Context // the context of Connect, which must last as long as the session
	lost   bool            // events is closed
	closed bool
}

// Events returns the channel to which send sends.
func (c *conn) Events() <-chan source.Event {
	_ = c.script.step(nil, "events") //nolint:staticcheck // Events has no context
	if c.script.returnsNil == "events" {
		return nil
	}
	return c.events
}

// Pending returns the shutdown that was pending when the call began.
func (c *conn) Pending(ctx context.Context) (*source.Event, error) {
	s := c.script
	s.mu.Lock()
	pending, unknown := s.pending, s.pendingUnknown
	s.mu.Unlock()
	if err := s.step(ctx, "pending"); err != nil {
		return nil, err
	}
	if unknown {
		return nil, fmt.Errorf("nobody knows: %w", errors.ErrUnsupported)
	}
	return pending, nil
}

// RequestDelay grants the request, or the limit of the script if that is less.
func (c *conn) RequestDelay(ctx context.Context, wish time.Duration) (time.Duration, error) {
	s := c.script
	if err := s.step(ctx, "delay"); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit == 0 || wish <= s.limit {
		return wish, nil
	}
	if s.capWithoutError {
		return s.limit, nil
	}
	return s.limit, errors.Join(&source.DelayCappedError{Requested: wish, Granted: s.limit, Setting: "InhibitDelayMaxSec", SetBy: s.limitFile}, errRefused)
}

// Inhibit fails if a shutdown was pending when the call began, as logind does.
func (c *conn) Inhibit(ctx context.Context) (io.Closer, error) {
	s := c.script
	s.mu.Lock()
	refused := s.pending != nil && !s.grantsNextInShutdown
	s.grantsNextInShutdown = false
	s.mu.Unlock()
	if err := s.step(ctx, "inhibit"); err != nil {
		return nil, err
	}
	if refused {
		return nil, errInProgress
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.returnsNil == "inhibit" {
		return nil, nil //nolint:nilnil // a source that is wrong
	}
	return s.grant(), nil
}

// Close ends the session. A second call is a misuse.
func (c *conn) Close() error {
	s := c.script
	s.set(func(s *script) {
		if c.closed {
			s.misuse = append(s.misuse, "a session was closed twice")
		}
		c.closed = true
	})
	err := s.step(nil, "close") //nolint:staticcheck // Close has no context
	s.set(func(*script) { c.end() })
	return err
}

// end closes the channel of events. The caller holds the mutex.
func (c *conn) end() {
	if !c.lost {
		c.lost = true
		close(c.events)
	}
}

// lose does what loseSession does. The caller holds the mutex.
func (s *script) lose() {
	for _, c := range s.sessions {
		c.end()
	}
}

// loseSession ends all sessions, like the loss of a bus.
func (s *script) loseSession() { s.set((*script).lose) }

// send sends an event to all sessions. The caller holds the mutex.
func (s *script) send(event source.Event) {
	for _, c := range s.sessions {
		if !c.lost {
			c.events <- event
		}
	}
}

// announce begins a shutdown: it is pending, and all sessions get the event.
func (s *script) announce() {
	s.set(func(s *script) {
		event := source.Event{Kind: source.KindReboot}
		s.pending = &event
		s.send(event)
	})
}

// cancel cancels the shutdown: none is pending, and all sessions get the event.
func (s *script) cancel() {
	s.set(func(s *script) { s.pending = nil; s.send(source.Event{Cancelled: true}) })
}

// lock is a lock of the scripted host, which counts how often it was closed.
type lock struct {
	script *script
	closed int
}

// grant returns a new lock. The caller holds the mutex.
func (s *script) grant() io.Closer {
	l := &lock{script: s}
	s.locks = append(s.locks, l)
	s.held++
	if s.held == 2 {
		s.twoHeldSince = time.Now()
	}
	return l
}

// Close releases the lock, even if a fault makes it return an error.
func (l *lock) Close() error {
	s := l.script
	err := s.step(nil, "release") //nolint:staticcheck // Close has no context
	s.mu.Lock()
	defer s.mu.Unlock()
	l.release()
	return err
}

// release releases the lock. The caller holds the mutex.
func (l *lock) release() {
	s := l.script
	l.closed++
	if l.closed > 1 {
		s.misuse = append(s.misuse, "a lock was closed twice")
		return
	}
	wereTwoHeld := s.held == 2 && time.Since(s.twoHeldSince) > 0 // a lock may replace another one at the same moment
	if wereTwoHeld && !s.allowsTwoLocks {
		s.misuse = append(s.misuse, fmt.Sprint("two locks were held for ", time.Since(s.twoHeldSince)))
	}
	s.held--
}

// heldLocks returns the number of held locks.
func (s *script) heldLocks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// allCalls returns the methods that were called so far, in order.
func (s *script) allCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// callCount returns how often a method was called.
func (s *script) callCount(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[method]
}

// misuses returns wrong uses of the source, as text: those that were recorded, locks that were not closed once, and
// sessions that are open.
func (s *script) misuses() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	wrong := slices.Clone(s.misuse)
	for i, l := range s.locks {
		if l.closed != 1 {
			wrong = append(wrong, fmt.Sprintf("lock %d of %d was closed %d times", i+1, len(s.locks), l.closed))
		}
	}
	for i, c := range s.sessions {
		if !c.closed {
			wrong = append(wrong, fmt.Sprintf("session %d of %d is open", i+1, len(s.sessions)))
		}
	}
	return strings.Join(wrong, "; ")
}
