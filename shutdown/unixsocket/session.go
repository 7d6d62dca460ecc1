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
	// checkInterval is how often the session checks that its socket is at its path.
	checkInterval = 500 * time.Millisecond
	// acceptPause is the pause after a failed accept, for example without a free descriptor.
	acceptPause = 100 * time.Millisecond
)

// session listens on the socket, and recreates it if it is removed.
type session struct {
	source      *Source
	logger      klog.Logger
	events      chan source.Event
	eventLock   chan struct{} // a mutex; held while a line is handled, so that the pending shutdown and the events change together
	unannounced unannounced
	ctx         context.Context
	cancel      context.CancelFunc
	goroutines  sync.WaitGroup // all goroutines but the one that closes done
	done        chan struct{}  // closed after these goroutines have ended and events is closed
	closeErr    error          // the error of closing the socket; set before done is closed
}

// newSession starts accepting connections. Close ends the session; the end of ctx does not.
func newSession(ctx context.Context, from *Source, e *endpoint) *session {
	s := &session{source: from, logger: klog.FromContext(ctx), events: make(chan source.Event), eventLock: make(chan struct{}, 1), done: make(chan struct{})}
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
	if limit == 0 || limit >= delay {
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

// lock makes hosts wait. Closing the last one sends them the reply. Further calls return the result of
// the first.
type lock func() error

func (l lock) Close() error { return l() }

// Close stops listening. Hosts that wait for a lock still do.
func (s *session) Close() error {
	s.cancel()
	<-s.done
	return s.closeErr
}

// watchSocket recreates a removed or replaced socket until the session ends, unless another agent
// listens in its place. If that fails, the session ends. watchSocket owns the endpoint and closes it.
func (s *session) watchSocket(e *endpoint) error {
	defer s.cancel()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	isYielding := false
	for {
		select {
		case <-s.ctx.Done():
			return e.close()
		case <-tick.C:
		}
		switch {
		case e.isInPlace():
			isYielding = false
		case e.isTaken(s.ctx):
			if !isYielding {
				s.logger.Error(nil, "Another agent listens on the socket, so hosts cannot reach this one", "path", e.path)
			}
			isYielding = true
		default:
			next, err := listen(s.ctx, e.path)
			if err != nil {
				s.logger.Error(err, "Lost the socket", "path", e.path)
				return e.Close()
			}
			s.logger.Info("Recreated the socket, which was removed", "path", e.path)
			s.start(func() { s.accept(next) })
			if err := e.Close(); err != nil {
				s.logger.Error(err, "Failed to close the removed socket", "path", e.path)
			}
			e, isYielding = next, false
		}
	}
}

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

// handleEvent records an announcement or a cancellation and sends it to the manager. reply is the
// host's reply; "": the host waits. released are the hosts that no longer wait; they get the reply too.
func (s *session) handleEvent(event source.Event, host net.Conn) (waits bool, reply string, released []net.Conn) {
	hosts := s.source.hosts
	if !event.Cancelled {
		waits, reply = hosts.announce(event, host)
		s.send(event) // if the session ends, the shutdown is pending for the next one
		return waits, reply, nil
	}
	announced := hosts.setAnnounced(nil)
	if !s.send(event) { // the session ends: the shutdown stays pending, and the host may cancel again
		hosts.setAnnounced(announced)
		return false, sessionEndingReply, nil
	}
	return false, "cancelled", hosts.takeWaiting()
}

// sessionEndingReply is the reply to a line that the ending session did not handle.
const sessionEndingReply = "error: the agent is reopening its socket, send the line again"

// send sends an event to the manager. It returns false if the session ends.
func (s *session) send(event source.Event) bool {
	select {
	case s.events <- event:
		return true
	case <-s.ctx.Done():
		return false
	}
}
