package unixsocket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
)

// session is one listening socket.
type session struct {
	source   *Source
	listener *net.UnixListener
	events   chan shutdown.Event
	life     context.Context
	end      context.CancelFunc
	work     sync.WaitGroup // the accepting goroutine and those that read
	over     chan struct{}  // closed when they and the events have ended
}

// newSession starts to accept hosts. Its life does not end with ctx, which may be
// that of the attempt to connect, but with Close.
func newSession(ctx context.Context, source *Source, listener *net.UnixListener) *session {
	s := &session{source: source, listener: listener, events: make(chan shutdown.Event), over: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.work.Go(s.accept)
	go func() {
		defer close(s.over)
		s.work.Wait()
		close(s.events)
	}()
	return s
}

// Events is closed when the socket is lost, and by Close.
func (s *session) Events() <-chan shutdown.Event { return s.events }

// Pending gives the shutdown that was announced to this process. A host does not
// answer questions: if none was, it cannot tell, and the error wraps
// errors.ErrUnsupported.
func (s *session) Pending(context.Context) (*shutdown.Event, error) {
	if event := s.source.under(); event != nil {
		copied := *event
		return &copied, nil
	}
	return nil, fmt.Errorf("a host behind a socket does not say what is under way: %w", errors.ErrUnsupported)
}

// RequestDelay grants what the options say.
func (s *session) RequestDelay(_ context.Context, wish time.Duration) (time.Duration, error) {
	limit := s.source.options.Delay
	if limit == 0 || limit >= wish {
		return wish, nil
	}
	return limit, &shutdown.DelayCappedError{Requested: wish, Granted: limit}
}

// Inhibit makes hosts wait for their reply.
func (s *session) Inhibit(context.Context) (io.Closer, error) {
	s.source.lock()
	return &lock{release: sync.OnceValue(func() error { return reply(s.source.unlock(), "released") })}, nil
}

// lock is what hosts wait for.
type lock struct{ release func() error }

// Close lets them go on. Every later call gives the result of the first.
func (l *lock) Close() error { return l.release() }

// Close stops to listen. Hosts that wait go on waiting for the lock.
func (s *session) Close() error {
	s.end()
	err := s.listener.Close()
	<-s.over
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, s.removeSocket())
}

// removeSocket takes the name away, if it is there.
func (s *session) removeSocket() error {
	err := os.Remove(s.source.options.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// accept takes hosts in until the listener fails or is closed, which ends the
// session.
func (s *session) accept() {
	defer s.end()
	for {
		host, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.work.Go(func() { s.serve(host) })
	}
}

// serve reads what a host says, until it says no more or the session ends. A host
// that waits is kept: closing its side of the connection is no cancellation.
func (s *session) serve(host net.Conn) {
	stop := context.AfterFunc(s.life, func() { _ = host.SetReadDeadline(time.Unix(1, 0)) }) // it can fail only on a closed one
	defer stop()
	waits := false
	lines := bufio.NewScanner(host)
	for lines.Scan() {
		waits = s.hear(lines.Text(), host) || waits
	}
	if !waits {
		_ = host.Close() // nothing was promised to it
	}
}

// hear handles one line, and tells whether the host waits for the lock from now on.
func (s *session) hear(line string, host net.Conn) (waits bool) {
	event, err := parse(line, time.Now())
	if err != nil {
		_ = answer(host, "error: "+err.Error()) // a host that is gone misses nothing
		return false
	}
	if event.Cancelled {
		_ = reply(s.source.cancelled(), "cancelled") // as above
		s.send(event)
		return false
	}
	waits = s.source.announced(event, host)
	s.send(event)
	if !waits {
		_ = answer(host, "released") // as above
	}
	return waits
}

// send hands an event to the manager, unless the session ends.
func (s *session) send(event shutdown.Event) {
	select {
	case s.events <- event:
	case <-s.life.Done():
	}
}
