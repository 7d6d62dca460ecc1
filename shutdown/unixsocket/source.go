package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Origin is the [shutdown.Event.Origin] of this source's events.
const Origin = "unixsocket"

const (
	// replyTimeout bounds the writing of a line to a host that does not read.
	replyTimeout = time.Second
	// maxWaiting is how many connections may wait for the locks.
	maxWaiting = 64
	// maxPath leaves enough of the kernel's limit (103 bytes on macOS, 107 on Linux) for
	// the longer name that the socket has while it is made.
	maxPath = 90
)

// Options configure a [Source].
type Options struct {
	// Path is the path of the socket, at most 90 bytes. Its directory must exist. A file
	// that is there is replaced, whether it is the socket of an earlier agent or of one
	// that runs. Required.
	Path string
	// Delay is how long the host waits when an announcement has no SECONDS. 0 means as
	// long as the manager requests; a negative value is an error.
	Delay time.Duration
}

// Source is the [shutdown.Source] of a host that announces its shutdown on a unix socket
// and waits for the reply. Make one with [New] and give it to one manager. All methods
// may be called concurrently.
type Source struct {
	options Options
	idle    time.Duration // idleTimeout, except in tests

	mu        sync.Mutex // guards the fields below; never held while anything is read or written
	lockCount int
	pending   *shutdown.Event
	waiting   map[net.Conn]struct{} // hosts that wait for the locks
}

var _ shutdown.Source = (*Source)(nil)

// New validates the options. The socket does not exist before Connect, which the manager
// calls.
func New(options Options) (*Source, error) {
	switch {
	case options.Path == "":
		return nil, errors.New("unixsocket: Options.Path is required")
	case len(options.Path) > maxPath:
		return nil, fmt.Errorf("unixsocket: Options.Path must not have more than %d bytes: %q", maxPath, options.Path)
	case options.Delay < 0:
		return nil, fmt.Errorf("unixsocket: Options.Delay must not be negative: %v", options.Delay)
	}
	return &Source{options: options, idle: idleTimeout, waiting: map[net.Conn]struct{}{}}, nil
}

// Connect listens on the socket. If another agent listens there, this one takes its
// place. ctx gives the session its logger and bounds the connecting; the end of ctx does
// not end the session.
func (s *Source) Connect(ctx context.Context) (shutdown.Session, error) {
	if err := removeStale(s.options.Path, time.Now()); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to clean up beside the socket", "path", s.options.Path)
	}
	e, err := listen(ctx, s.options.Path)
	if err != nil {
		return nil, fmt.Errorf("failed to listen for the host on %s: %w", s.options.Path, err)
	}
	return newSession(ctx, s, e), nil
}

// addAnnouncement records a shutdown and the host that waits for the locks. If there is
// nothing to wait for, waits is false and line is the reply.
func (s *Source) addAnnouncement(event shutdown.Event, host net.Conn) (waits bool, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = &event
	_, known := s.waiting[host]
	switch {
	case s.lockCount == 0:
		return false, "released"
	case len(s.waiting) >= maxWaiting && !known:
		return false, "error: too many connections wait for the reply"
	}
	s.waiting[host] = struct{}{}
	return true, ""
}

// setPending replaces the pending shutdown, nil being none, and returns the previous one.
func (s *Source) setPending(event *shutdown.Event) (before *shutdown.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.pending = s.pending, event
	return before
}

// takeWaiting removes and returns the hosts that wait.
func (s *Source) takeWaiting() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeWaitingLocked()
}

// addLock counts a new lock.
func (s *Source) addLock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockCount++
}

// removeLock discounts a lock. If it was the last one, it removes and returns the hosts
// that wait.
func (s *Source) removeLock() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lockCount--; s.lockCount > 0 {
		return nil
	}
	return s.takeWaitingLocked()
}

// takeWaitingLocked removes and returns the hosts that wait. The caller holds the mutex.
func (s *Source) takeWaitingLocked() []net.Conn {
	hosts := make([]net.Conn, 0, len(s.waiting))
	for host := range s.waiting {
		hosts = append(hosts, host)
	}
	clear(s.waiting)
	return hosts
}

// pendingEvent returns the announced shutdown, or nil if there is none.
func (s *Source) pendingEvent() *shutdown.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}
