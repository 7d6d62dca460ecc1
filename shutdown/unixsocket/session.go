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
	turn        chan struct{} // of size 1; full: a line is passed on, so that pending and events change together and in order
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
	s := &session{source: from, logger: klog.FromContext(ctx), events: make(chan source.Event), turn: make(chan struct{}, 1), over: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.work.Go(func() { s.accept(e) })
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
func (s *session) Pending(context.Context) (*source.Event, error) { return s.source.hosts.pending() }

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
	return lock(sync.OnceValue(func() error { return replyAndClose(hosts.removeLock(), "released") })), nil
}

// lock is held while the hosts wait. It releases them if it was the last lock. Further calls
// return the result of the first.
type lock func() error

func (l lock) Close() error { return l() }

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
		switch {
		case e.inPlace():
			yields = false
		case e.taken(s.life):
			if !yields {
				s.logger.Error(nil, "Another agent listens on the socket, hosts do not reach this one", "path", e.path)
			}
			yields = true
		default:
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

// pass records an announcement or a cancellation and passes it to the manager. reply is the line for
// the host now; "": none, because the host waits and is told when the locks are closed. released
// are the hosts that no longer wait; they get the line too.
func (s *session) pass(event source.Event, host net.Conn) (waits bool, reply string, released []net.Conn) {
	hosts := s.source.hosts
	if !event.Cancelled {
		waits, reply = hosts.announce(event, host)
		s.send(event) // if the session ends instead, the next session finds the shutdown pending
		return waits, reply, nil
	}
	announced := hosts.setAnnounced(nil)
	if !s.send(event) { // the session ends, so the shutdown stays pending, and the host may cancel again
		hosts.setAnnounced(announced)
		return false, sessionEndingLine, nil
	}
	return false, "cancelled", hosts.takeWaiting()
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
