package apiserverproxy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// Proxy listens on a port of 127.0.0.1 from [Start] until the end of the test. All
// methods may be called concurrently.
type Proxy struct {
	faults  *Transport
	server  *http.Transport // the connections to the server
	handler http.Handler
	address string         // of the listener; the same after each Revive
	running sync.WaitGroup // listeners and connections

	mu     sync.Mutex // guards the fields below
	life   *life      // nil: dead
	closed bool
	errs   []error // errors of listeners that failed
}

// life is the server of a proxy from Start or Revive until Die.
type life struct {
	listener net.Listener
	http     *http.Server
	over     chan struct{} // closed by end
}

// Start puts a proxy in front of the server with the given URL, until the end of the
// test. Errors fail the test.
func Start(t testing.TB, server string) *Proxy {
	t.Helper()
	p, err := start(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func start(server string) (*Proxy, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("the server's URL: %w", err)
	}
	// Bodies pass unchanged, and idle connections stay open.
	base := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1000}
	p := &Proxy{faults: NewTransport(base), server: base}
	p.handler = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p.faults,
		FlushInterval: -1, // flush each event of a watch at once
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // closes the connection without logging
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	p.address = listener.Addr().String()
	p.serve(listener)
	return p, nil
}

// URL returns the URL of the proxy, for the Host of a rest.Config. It stays the same
// after [Proxy.Revive].
func (p *Proxy) URL() string { return "http://" + p.address }

// Script sets the script for all requests from now on. Nil, which is the initial script,
// causes no faults.
func (p *Proxy) Script(script Script) { p.faults.Script(script) }

// Requests returns the requests that have arrived, with their bodies, in order. A request
// is listed with its answer before the client receives the answer.
func (p *Proxy) Requests() []Request { return p.faults.Requests() }

// Die closes the listener and all connections, so that new connections are refused.
// Requests under way end without an answer, although the server may still carry them out.
// Die does not wait for them, so a script may call it.
func (p *Proxy) Die() {
	p.mu.Lock()
	l := p.life
	p.life = nil
	p.mu.Unlock()
	if l != nil {
		l.end()
	}
}

// Revive makes a proxy listen again on its address after [Proxy.Die]. It does nothing if
// the proxy has not died. After the end of the test it returns [http.ErrServerClosed];
// other errors are those of the listener.
func (p *Proxy) Revive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("failed to revive the proxy: %w", http.ErrServerClosed)
	}
	if p.life != nil {
		return nil
	}
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("failed to revive the proxy: %w", err)
	}
	p.serve(listener)
	return nil
}

// close ends the proxy for good and waits for all its goroutines.
func (p *Proxy) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Die()
	p.running.Wait()
	p.server.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

// serve starts to serve on a listener. The caller holds the mutex, or is start.
func (p *Proxy) serve(listener net.Listener) {
	l := &life{listener: listener, http: &http.Server{Handler: p.handler}, over: make(chan struct{})}
	l.http.ConnState = func(conn net.Conn, state http.ConnState) { p.trackConn(l, conn, state) }
	p.life = l
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		if err := l.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, fmt.Errorf("failed to serve: %w", err))
		}
	}()
}

// trackConn counts the connections, so that close can wait for them. It closes a
// connection that was accepted after the others were closed.
func (p *Proxy) trackConn(l *life, conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		p.running.Add(1)
		select {
		case <-l.over:
			_ = conn.Close() // its goroutine ends with a read error
		default:
		}
	case http.StateClosed, http.StateHijacked:
		p.running.Done()
	default:
	}
}

// end closes the server. It closes the listener too, because the server closes it only if
// Serve was called. The errors do not matter.
func (l *life) end() {
	close(l.over)
	_ = l.http.Close()
	_ = l.listener.Close()
}
