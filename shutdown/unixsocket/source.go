package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Origin is what [shutdown.Event.Origin] says of an event of this source.
const Origin = "unixsocket"

// replyTimeout bounds the answer to a host that does not read it.
const replyTimeout = time.Second

// Options says where the host finds the agent.
type Options struct {
	// Path is the socket's; its directory must exist. A socket that a former agent
	// has left there is replaced. Required.
	Path string
	// Delay is how long the host waits when an announcement does not say; 0: as long
	// as it is asked to.
	Delay time.Duration
}

// Source is a host that announces its shutdown on a unix socket and waits for the
// reply. Make one with [New]; it is used by one manager.
type Source struct {
	options Options

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
	case options.Delay < 0:
		return nil, fmt.Errorf("unixsocket: Options.Delay must not be negative: %v", options.Delay)
	}
	return &Source{options: options, waiting: map[net.Conn]struct{}{}}, nil
}

// Connect listens on the socket.
func (s *Source) Connect(ctx context.Context) (shutdown.Session, error) {
	listener, err := s.listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to listen for the host: %w", err)
	}
	return newSession(ctx, s, listener), nil
}

// listen binds the socket under another name, gives it its mode, and moves it into
// its place: at no moment can anyone else connect, and nothing of a former agent is
// in the way.
func (s *Source) listen(ctx context.Context) (*net.UnixListener, error) {
	temporary := fmt.Sprintf("%s.%d", s.options.Path, os.Getpid())
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", temporary)
	if err != nil {
		return nil, err
	}
	socket := listener.(*net.UnixListener) // by the network's name
	socket.SetUnlinkOnClose(false)         // it will have another name
	err = os.Chmod(temporary, 0o600)
	if err == nil {
		err = os.Rename(temporary, s.options.Path)
	}
	if err != nil {
		return nil, errors.Join(err, socket.Close(), os.Remove(temporary))
	}
	return socket, nil
}

// announced notes a shutdown and who waits for it. It tells whether there is
// anything to wait for.
func (s *Source) announced(event shutdown.Event, host net.Conn) (waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = &event
	if s.locks > 0 {
		s.waiting[host] = struct{}{}
	}
	return s.locks > 0
}

// cancelled forgets the shutdown, and gives the hosts that wait for it.
func (s *Source) cancelled() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = nil
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
