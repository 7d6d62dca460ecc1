package apistatustest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// Server is an API server with Nodes, Pods, Events and Leases in memory. All
// methods may be called concurrently.
type Server struct {
	address string // of the listener
	store   *store
	routes  *http.ServeMux
	journal journal
	running sync.WaitGroup // listeners and connections

	mu     sync.Mutex // guards all below
	script func(*http.Request) Fault
	life   *life // nil: dead
	closed bool
	errs   []error // of listeners that ended by themselves
}

// life is a server from its start or revival to its death.
type life struct {
	listener net.Listener
	http     *http.Server
	over     chan struct{} // closed at its end
}

// end closes the listener too, which the server closes only if it has begun to use
// it. What these calls give is of no more use.
func (l *life) end() {
	close(l.over)
	_ = l.http.Close()
	_ = l.listener.Close()
}

// Start serves on a free port of 127.0.0.1, with copies of objects in store, as by
// [Server.Put]. An error is that of the listener, or names an object of a kind that
// is not served. Whoever starts a server closes it.
func Start(objects ...runtime.Object) (*Server, error) {
	kept := &store{}
	s := &Server{store: kept, routes: (&api{store: kept}).routes()}
	if err := s.Put(objects...); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	s.address = listener.Addr().String()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(listener)
	return s, nil
}

// URL is where it listens, as rest.Config has it in its Host; the same for all its
// lives.
func (s *Server) URL() string { return "http://" + s.address }

// Revive lets a server that has died listen on its address again, with all that it
// had stored. An error is that of the listener; a server that lives is left as it
// is, a closed one gives [http.ErrServerClosed].
func (s *Server) Revive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("failed to revive the server: %w", http.ErrServerClosed)
	}
	if s.life != nil {
		return nil
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	s.begin(listener)
	return nil
}

// begin serves on a listener. The mutex is held.
func (s *Server) begin(listener net.Listener) {
	l := &life{listener: listener, http: &http.Server{}, over: make(chan struct{})}
	l.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(l, w, r) })
	l.http.ConnState = func(conn net.Conn, state http.ConnState) { s.count(l, conn, state) }
	s.life = l
	s.running.Go(func() {
		if err := l.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs = append(s.errs, fmt.Errorf("failed to serve: %w", err))
		}
	})
}

// count keeps account of connections, so that Close can wait for them. One that was
// accepted when the others had been closed is closed here.
func (s *Server) count(l *life, conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.running.Add(1)
		select {
		case <-l.over:
			_ = conn.Close() // its goroutine sees it
		default:
		}
	case http.StateClosed:
		s.running.Done()
	default:
	}
}

// Die closes the listener and all connections: from now on connections are refused.
// Requests that are under way end without an answer, but Die does not wait for
// them, so that a script may call it. What is stored stays.
func (s *Server) Die() {
	s.mu.Lock()
	l := s.life
	s.life = nil
	s.mu.Unlock()
	if l != nil {
		l.end()
	}
}

// Close ends the server for good and returns when its goroutines have ended, those
// of requests that hang too. What was stored and asked for can still be read. The
// error is that of a listener that had ended by itself. A second call does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Die()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}
