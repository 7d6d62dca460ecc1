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

// callTimeout bounds the questions that a session asks of its own accord.
const callTimeout = time.Second

// session is one connection to one logind process: a new owner of the name is a
// new session.
type session struct {
	source *Source
	conn   *conn
	logger klog.Logger
	// owner is the unique name of logind. The bus gives it to no other connection
	// again, so a signal from anybody else is forged.
	owner   string
	signals *signalQueue
	events  chan shutdown.Event
	watched sync.WaitGroup // the watching goroutine

	// mu guards settled and watchedOver. It is never held across a call.
	mu      sync.Mutex
	settled dbus.Sequence // of the last answer that no shutdown is under way
	// watchedOver is the number of locks that logind has listed and that are held.
	watchedOver int

	// preparing says that a shutdown is known to be under way, from a signal or from
	// Pending; whoever changes it tells of the change, so that it is told once.
	preparing atomic.Bool
}

var _ shutdown.Session = (*session)(nil)

// newSession asks the bus for changes of logind's owner before it asks who that is,
// and for logind's signals when it knows: nothing is missed, and nothing is kept that
// somebody else says.
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
	// A question to the name starts a logind that is only to be activated.
	if _, err := c.limit(ctx); err != nil {
		return nil, err
	}
	owner, err := c.owner(ctx)
	if err != nil {
		return nil, err
	}
	s.owner = owner
	signals.listenTo(owner)
	if err := c.subscribe(ctx, fromLogin1(prepareForShutdown), fromLogin1(prepareForShutdownWithMetadata)); err != nil {
		return nil, err
	}
	s.watched.Go(s.watch)
	return s, nil
}

// Events is closed when the bus is lost, when logind's owner changes, when the
// lock that was taken is no longer listed, and by Close.
func (s *session) Events() <-chan shutdown.Event { return s.events }

// Close ends the connection, the calls that are under way, and the session's
// goroutine.
func (s *session) Close() error {
	err := joinClose(nil, s.conn)
	s.watched.Wait()
	return err
}

// ask gives the context of a question of our own; it ends with the connection.
func (s *session) ask() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.conn.Context(), callTimeout)
}
