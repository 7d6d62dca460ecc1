package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// lookInterval is how often the session checks that its socket is at its path.
	lookInterval = 500 * time.Millisecond
	// acceptPause is the pause after a failed accept, as when the process has no free
	// descriptor.
	acceptPause = 100 * time.Millisecond
)

// session listens on the socket. If the socket is removed, the session makes a new one.
type session struct {
	source      *Source
	logger      klog.Logger
	events      chan source.Event
	statements  chan statement
	unannounced unannounced
	life        context.Context
	end         context.CancelFunc
	work        sync.WaitGroup // all goroutines but the one that closes over
	over        chan struct{}  // closed after these goroutines have ended and events is closed
	failed      error          // the error of closing the socket; set before over is closed
}

// newSession starts to accept connections. The session ends with Close and not with ctx,
// which may only bound the connecting.
func newSession(ctx context.Context, from *Source, e *endpoint) *session {
	s := &session{
		source:     from,
		logger:     klog.FromContext(ctx),
		events:     make(chan source.Event),
		statements: make(chan statement),
		over:       make(chan struct{}),
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.work.Go(func() { s.accept(e) })
	s.work.Go(s.relayStatements)
	s.work.Go(func() { s.failed = s.keepInPlace(e) })
	go func() {
		defer close(s.over)
		s.work.Wait()
		close(s.events)
	}()
	return s
}

// Events returns the channel of shutdowns and cancellations. It is closed when the socket
// cannot be made again, and by Close.
func (s *session) Events() <-chan source.Event { return s.events }

// Pending returns the shutdown that a host has announced to this process, with the deadline
// that the host has set, if any. It returns nil if the host has not shut down half an hour
// after it went on. If no host has announced a shutdown, it cannot know whether one is under
// way, because the host answers no questions; the error then wraps errors.ErrUnsupported.
func (s *session) Pending(context.Context) (*source.Event, error) {
	event, heard := s.source.hosts.pending()
	if !heard {
		return nil, fmt.Errorf("a host behind a socket does not say what is under way: %w", errors.ErrUnsupported)
	}
	return event, nil
}

// RequestDelay grants wish, or Options.Delay with a *[source.DelayCappedError] if that
// is shorter.
func (s *session) RequestDelay(_ context.Context, wish time.Duration) (time.Duration, error) {
	limit := s.source.options.Delay
	if limit == 0 || limit >= wish {
		return wish, nil
	}
	return limit, &source.DelayCappedError{Requested: wish, Granted: limit}
}

// Inhibit takes a lock. Hosts that announce a shutdown wait until all locks are closed.
func (s *session) Inhibit(context.Context) (io.Closer, error) {
	hosts := s.source.hosts
	hosts.addLock()
	return &lock{release: sync.OnceValue(func() error { return replyAndClose(hosts.removeLock(), "released") })}, nil
}

// lock is held while the hosts wait.
type lock struct{ release func() error }

// Close releases the waiting hosts if this was the last lock. Further calls return the
// result of the first.
func (l *lock) Close() error { return l.release() }

// Close stops listening. Hosts that wait for a lock go on waiting for it.
func (s *session) Close() error {
	s.end()
	<-s.over
	return s.failed
}

// keepInPlace keeps the socket at its path until the session ends. It makes a socket that
// was removed or replaced anew, unless another agent listens in its place. If that fails,
// the session ends. keepInPlace owns the endpoint and closes it.
func (s *session) keepInPlace(e *endpoint) error {
	defer s.end()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	yields := false
	for {
		select {
		case <-s.life.Done():
			return e.close()
		case <-tick.C:
		}
		if e.inPlace() {
			yields = false
			continue
		}
		if e.taken(s.life) {
			if !yields {
				s.logger.Error(nil, "Another agent listens on the socket, hosts do not reach this one", "path", e.path)
			}
			yields = true
			continue
		}
		next, err := listen(s.life, e.path)
		if err != nil {
			s.logger.Error(err, "Lost the socket", "path", e.path)
			return e.Close()
		}
		s.logger.Info("Made the socket anew, somebody has removed it", "path", e.path)
		s.work.Go(func() { s.accept(next) })
		if err := e.Close(); err != nil {
			s.logger.Error(err, "Failed to close the socket that was removed", "path", e.path)
		}
		e, yields = next, false
	}
}

// accept accepts connections until the socket is closed.
func (s *session) accept(e *endpoint) {
	for {
		host, err := e.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.logger.Error(err, "Failed to take a host in, will try again")
			select {
			case <-time.After(acceptPause):
			case <-s.life.Done():
			}
		default:
			s.startServing(host)
		}
	}
}

// statement is an announcement or cancellation of a host on its way to relayStatements.
type statement struct {
	event   source.Event
	host    net.Conn
	outcome chan outcome // buffered, so that relayStatements does not block
}

// outcome is the effect of a statement on the connections.
type outcome struct {
	waits    bool       // the host is told when the locks are closed
	line     string     // the line to write to the host now; "": none
	released []net.Conn // the hosts that no longer wait; they get the line too
}

// relayStatements handles one statement after the other, so that the pending shutdown
// changes together with its event, and the events are sent in the order of the changes.
func (s *session) relayStatements() {
	for {
		select {
		case stmt := <-s.statements:
			if stmt.event.Cancelled {
				stmt.outcome <- s.cancel(stmt.event)
			} else {
				stmt.outcome <- s.announce(stmt)
			}
		case <-s.life.Done():
			return
		}
	}
}

func (s *session) announce(stmt statement) outcome {
	waits, line := s.source.hosts.announce(stmt.event, stmt.host)
	s.send(stmt.event) // if the session ends instead, the next session finds the shutdown pending
	return outcome{waits: waits, line: line}
}

// cancel keeps the shutdown pending if the session ends before the manager has received
// the cancellation. The host is told so and may cancel again.
func (s *session) cancel(event source.Event) outcome {
	announced := s.source.hosts.setAnnounced(nil)
	if !s.send(event) {
		s.source.hosts.setAnnounced(announced)
		return outcome{line: sessionEndingLine}
	}
	return outcome{line: "cancelled", released: s.source.hosts.takeWaiting()}
}

// sessionEndingLine is the reply to a statement that the ending session did not pass on.
const sessionEndingLine = "error: the agent is about to listen anew, say it again"

// send passes an event to the manager. It returns false if the session ends instead.
func (s *session) send(event source.Event) bool {
	select {
	case s.events <- event:
		return true
	case <-s.life.Done():
		return false
	}
}
