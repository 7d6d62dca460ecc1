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

	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// lookInterval is how often the socket is looked for at its path.
	lookInterval = 500 * time.Millisecond
	// acceptPause spaces attempts to take a host in, as when descriptors are short.
	acceptPause = 100 * time.Millisecond
)

// session is a listening socket, or one after the other if somebody removes them.
type session struct {
	source *Source
	logger klog.Logger
	events chan shutdown.Event
	said   chan statement
	guests guests
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup // every goroutine but the one that waits for them
	over   chan struct{}  // closed when they and the events have ended
	failed error          // of the closing of the socket; set before over is closed
}

// newSession starts to accept hosts. Its life does not end with ctx, which may be
// that of the attempt to connect, but with Close.
func newSession(ctx context.Context, source *Source, e *endpoint) *session {
	s := &session{
		source: source,
		logger: klog.FromContext(ctx),
		events: make(chan shutdown.Event),
		said:   make(chan statement),
		over:   make(chan struct{}),
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.work.Go(func() { s.accept(e) })
	s.work.Go(s.relay)
	s.work.Go(func() { s.failed = s.lookAfter(e) })
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
	<-s.over
	return s.failed
}

// lookAfter sees to it that hosts find the socket until the session ends: one that was
// removed or replaced is made anew, unless another agent listens in its place. A socket
// that cannot be made ends the session. It owns the endpoint, and closes it.
func (s *session) lookAfter(e *endpoint) error {
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

// accept takes hosts in until the socket is closed.
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
			s.admit(host)
		}
	}
}

// statement is a line of a host that is an event, and where its outcome goes.
type statement struct {
	event   shutdown.Event
	host    net.Conn
	outcome chan outcome // of size 1
}

// outcome is what follows from a statement for those who are connected.
type outcome struct {
	waits  bool       // the host is told when the lock is closed
	answer string     // to the host; "": none yet
	freed  []net.Conn // those who waited and need not any longer
}

// relay takes one statement after the other, so that what this source says to be
// pending changes together with the event, and the events come in the order of the
// changes.
func (s *session) relay() {
	for {
		select {
		case said := <-s.said:
			if said.event.Cancelled {
				said.outcome <- s.cancel(said.event)
			} else {
				said.outcome <- s.announce(said)
			}
		case <-s.life.Done():
			return
		}
	}
}

func (s *session) announce(said statement) outcome {
	waits, answer := s.source.announced(said.event, said.host)
	s.send(said.event) // if the session ends instead, it is pending for the next one
	return outcome{waits: waits, answer: answer}
}

// cancel undoes itself if the session ends before the manager has heard it: the next
// one will find the shutdown pending, and the host may say it again.
func (s *session) cancel(event shutdown.Event) outcome {
	pending := s.source.setPending(nil)
	if !s.send(event) {
		s.source.setPending(pending)
		return outcome{answer: notHeard}
	}
	return outcome{answer: "cancelled", freed: s.source.free()}
}

// notHeard is the answer when the session ends within a statement.
const notHeard = "error: the agent is about to listen anew, say it again"

// send hands an event to the manager, unless the session ends.
func (s *session) send(event shutdown.Event) bool {
	select {
	case s.events <- event:
		return true
	case <-s.life.Done():
		return false
	}
}
