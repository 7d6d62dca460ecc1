//go:build linux

package logind

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

// callTimeout bounds the calls that a session makes without a caller's context.
const callTimeout = time.Second

// session is one connection to one logind process. When logind's bus name gets a new
// owner, the session ends.
type session struct {
	source *Source
	conn   *conn
	logger klog.Logger
	// owner is the unique bus name of logind. The bus never gives it to another
	// connection, so a signal from any other sender is forged.
	owner     string
	signals   *signalQueue
	events    chan shutdown.Event
	watchLoop sync.WaitGroup // the goroutine of watch

	// mu guards the two fields below. It is never held during a call over the bus.
	mu                   sync.Mutex
	notPreparingSequence dbus.Sequence // of the last reply that no shutdown is under way
	// verifiedLocks is how many of our held locks logind has listed.
	verifiedLocks int

	// preparing is true while a shutdown is known to be under way, from a signal or from
	// Pending. Whoever changes it sends the event, so each change is sent once.
	preparing atomic.Bool
}

var _ shutdown.Session = (*session)(nil)

// newSession subscribes to owner changes before it reads the owner, so that no change is
// missed. It subscribes to logind's signals when it knows the owner, so that signals of
// other senders are dropped.
func newSession(ctx context.Context, source *Source, c *conn, signals *signalQueue) (*session, error) {
	s := &session{
		source:  source,
		conn:    c,
		logger:  klog.FromContext(ctx),
		signals: signals,
		events:  make(chan shutdown.Event),
	}
	if err := c.subscribe(ctx, ownerChanges()); err != nil {
		return nil, err
	}
	// A call to the well-known name makes the bus start a logind that is not running yet.
	if _, err := c.limit(ctx); err != nil {
		return nil, err
	}
	owner, err := c.owner(ctx)
	if err != nil {
		return nil, err
	}
	s.owner = owner
	signals.setOwner(owner)
	if err := c.subscribe(ctx, fromLogin1(prepareForShutdown), fromLogin1(prepareForShutdownWithMetadata)); err != nil {
		return nil, err
	}
	s.watchLoop.Go(s.watch)
	return s, nil
}

// Events returns the channel of shutdowns and cancellations. It is closed when the bus is
// lost, when logind's bus name changes its owner, when logind no longer lists a lock that
// is held, and by Close.
func (s *session) Events() <-chan shutdown.Event { return s.events }

// Close closes the connection, which ends the calls that are under way, and waits for the
// session's goroutine. Locks stay held.
func (s *session) Close() error {
	err := joinClose(nil, s.conn)
	s.watchLoop.Wait()
	return err
}

// callContext returns the context of a call that the session makes by itself. It ends
// with the connection, or after callTimeout.
func (s *session) callContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.conn.Context(), callTimeout)
}
