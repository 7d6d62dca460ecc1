package unixsocket

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// checkInterval is the interval at which the session checks that its socket is at its path.
	checkInterval = 500 * time.Millisecond
	// acceptPause is the pause after a failed accept, for example without a free descriptor.
	acceptPause = 100 * time.Millisecond
)

// session listens on the socket, and recreates it if it is removed.
type session struct {
	source *Source
	logger klog.Logger
	events chan source.Event
	// eventLock is a mutex whose wait can end with ctx: a send locks it, and a receive unlocks it. It is locked while a line
	// is handled, so that events are sent in the order in which the pending shutdown changes.
	eventLock   chan struct{}
	unannounced unannounced
	ctx         context.Context
	cancel      context.CancelFunc
	goroutines  sync.WaitGroup // all goroutines of the session, except the one that closes done
	done        chan struct{}  // closed after these goroutines have ended and events is closed
	closeErr    error          // the error of closing the socket; set before done is closed
}

// newSession starts accepting connections. The session ends with Close, or when the socket is lost. It does not
// end with ctx, which only bounds the connecting.
func newSession(ctx context.Context, src *Source, e *endpoint) *session {
	s := &session{
		source: src, logger: klog.FromContext(ctx), events: make(chan source.Event),
		eventLock: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.start(func() { s.accept(e) })
	s.start(func() { s.closeErr = s.watchSocket(e) })
	go func() {
		defer close(s.done)
		s.goroutines.Wait()
		close(s.events)
	}()
	return s
}

// start runs f in a goroutine that Close waits for.
func (s *session) start(f func()) {
	s.goroutines.Add(1)
	go func() {
		defer s.goroutines.Done()
		f()
	}()
}

// Events returns the shutdowns and cancellations. It is closed by Close, and when the socket cannot be
// recreated.
func (s *session) Events() <-chan source.Event { return s.events }

// Pending returns the shutdown that a host announced to this process, with the host's deadline, if any.
// It returns nil half an hour after the host should have shut down. If no shutdown was announced, the
// error wraps [errors.ErrUnsupported], because the host answers no questions.
func (s *session) Pending(context.Context) (*source.Event, error) { return s.source.hosts.pending() }

// RequestDelay grants delay, or Options.Delay with a *[source.DelayCappedError] if that is shorter.
func (s *session) RequestDelay(_ context.Context, delay time.Duration) (time.Duration, error) {
	limit := s.source.options.Delay
	if limit == 0 || limit >= delay { // 0: hosts wait as long as requested
		return delay, nil
	}
	return limit, &source.DelayCappedError{Requested: delay, Granted: limit}
}

// Inhibit takes a lock. Hosts that announce a shutdown wait until all locks are closed.
func (s *session) Inhibit(context.Context) (io.Closer, error) {
	hosts := s.source.hosts
	hosts.addLock()
	return lock(sync.OnceValue(func() error { return replyAndClose(hosts.removeLock(), "released") })), nil
}

// lock is an inhibitor lock: hosts that announce a shutdown wait for its Close, which calls the function.
type lock func() error

// Close releases the lock. When no other lock is held, the waiting hosts get the reply "released". Further calls
// return the result of the first.
func (l lock) Close() error { return l() }

// Close stops listening. Hosts that have announced a shutdown still wait until the locks are closed.
func (s *session) Close() error {
	s.cancel()
	<-s.done
	return s.closeErr
}

// watchSocket recreates the socket when its file was removed or replaced, until the session ends. If another agent's
// socket has replaced it, watchSocket only logs that. If the socket cannot be recreated, the session ends. watchSocket
// owns the endpoint and closes it.
func (s *session) watchSocket(e *endpoint) error {
	defer s.cancel()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	isTakenLogged := false // the log says that another agent has the socket
	for {
		select {
		case <-s.ctx.Done():
			return e.close()
		case <-tick.C:
		}
		switch {
		case e.isInPlace():
			isTakenLogged = false
		case e.isTaken(s.ctx):
			if !isTakenLogged {
				s.logger.Error(nil, "Another agent listens on the socket, so hosts cannot reach this one", "path", e.path)
			}
			isTakenLogged = true
		default:
			next, err := s.recreate(e)
			if err != nil {
				s.logger.Error(err, "Lost the socket", "path", e.path)
				return e.Close() // only the listener: the socket's file is gone
			}
			e, isTakenLogged = next, false
		}
	}
}

// recreate replaces the endpoint, whose socket was removed, by a new one at the same path.
func (s *session) recreate(removed *endpoint) (*endpoint, error) {
	next, err := listen(s.ctx, removed.path)
	if err != nil {
		return nil, err
	}
	s.logger.Info("Recreated the socket, which was removed", "path", next.path)
	s.start(func() { s.accept(next) })
	if err := removed.Close(); err != nil {
		s.logger.Error(err, "Failed to close the removed socket", "path", removed.path)
	}
	return next, nil
}

// accept serves each connection of the socket in a goroutine, until the socket is closed.
func (s *session) accept(e *endpoint) {
	for {
		host, err := e.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.logger.Error(err, "Failed to accept a connection, will retry")
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
			}
		default:
			s.startServing(host)
		}
	}
}

// handleEvent records an announcement or a cancellation of host, and sends it to the manager. waits says whether
// host waits from now on. reply is the line with which to answer host; "": none yet, because host waits. released are
// the hosts that wait no longer because of a cancellation; they get the reply too.
func (s *session) handleEvent(event source.Event, host net.Conn) (waits bool, reply string, released []net.Conn) {
	hosts := s.source.hosts
	if !event.Cancelled {
		waits, reply = hosts.announce(event, host)
		s.send(event) // if the session ends, the shutdown is pending for the next session
		return waits, reply, nil
	}
	announced := hosts.setAnnounced(nil)
	if isSent := s.send(event); !isSent { // the session ends: the shutdown stays pending, and the host may cancel again
		hosts.setAnnounced(announced)
		return false, sessionEndingReply, nil
	}
	return false, "cancelled", hosts.takeWaiting()
}

// sessionEndingReply is the reply to a line that the ending session did not handle.
const sessionEndingReply = "error: the agent is reopening its socket, send the line again"

// send sends an event to the manager. isSent is false if the session ends.
func (s *session) send(event source.Event) (isSent bool) {
	select {
	case s.events <- event:
		return true
	case <-s.ctx.Done():
		return false
	}
}
