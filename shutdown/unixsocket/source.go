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

// Origin is what [shutdown.Event.Origin] says of an event of this source.
const Origin = "unixsocket"

const (
	// replyTimeout bounds the answer to a host that does not read it.
	replyTimeout = time.Second
	// maxWaiting is how many connections may wait for the reply.
	maxWaiting = 64
	// maxPath keeps the socket's name, and the longer one that it has while it is made,
	// within what the kernel takes: 103 bytes on macOS, 107 on Linux.
	maxPath = 90
)

// Options says where the host finds the agent.
type Options struct {
	// Path is the socket's, of 90 bytes at most; its directory must exist. Whatever is
	// there is replaced, be it of a former agent or of one that runs. Required.
	Path string
	// Delay is how long the host waits when an announcement does not say; 0: as long
	// as it is asked to.
	Delay time.Duration
}

// Source is a host that announces its shutdown on a unix socket and waits for the
// reply. Make one with [New]; it is used by one manager.
type Source struct {
	options Options
	idle    time.Duration // idleTimeout, but in tests

	mu      sync.Mutex // guards all below; never held while anything is read or written
	locks   int
	pending *shutdown.Event
	waiting map[net.Conn]struct{} // hosts that wait for the reply
}

var _ shutdown.Source = (*Source)(nil)

// New checks the options; nothing listens before a manager runs.
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

// Connect listens on the socket, also where another agent does: it takes its place.
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

// announced notes a shutdown and who waits for it. It tells whether the host has
// anything to wait for, and else what it is answered.
func (s *Source) announced(event shutdown.Event, host net.Conn) (waits bool, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = &event
	_, known := s.waiting[host]
	switch {
	case s.locks == 0:
		return false, "released"
	case len(s.waiting) >= maxWaiting && !known:
		return false, "error: too many connections wait for the reply"
	}
	s.waiting[host] = struct{}{}
	return true, ""
}

// setPending changes what is under way, nil being nothing, and gives what was.
func (s *Source) setPending(event *shutdown.Event) (before *shutdown.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.pending = s.pending, event
	return before
}

// free gives the hosts that wait, and need not any longer.
func (s *Source) free() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeWaiting()
}

// lock counts a lock.
func (s *Source) lock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks++
}

// unlock gives the hosts that may go on: those that wait, if it was the last lock.
func (s *Source) unlock() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks--; s.locks > 0 {
		return nil
	}
	return s.takeWaiting()
}

// takeWaiting empties the list of those who wait. The mutex is held.
func (s *Source) takeWaiting() []net.Conn {
	hosts := make([]net.Conn, 0, len(s.waiting))
	for host := range s.waiting {
		hosts = append(hosts, host)
	}
	clear(s.waiting)
	return hosts
}

// under gives the shutdown under way; nil: none was announced.
func (s *Source) under() *shutdown.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}
