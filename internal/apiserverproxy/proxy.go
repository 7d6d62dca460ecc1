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

// Proxy listens on a port of 127.0.0.1 from [Start] until the test ends. All methods may be called
// concurrently.
type Proxy struct {
	faults  *Transport      // applies the script
	server  *http.Transport // has the connections to the server; faults forwards to it
	handler http.Handler
	address string         // of the listener; not changed by Revive
	running sync.WaitGroup // listeners and connections

	mu      sync.Mutex // guards the fields below
	current *frontend  // nil: dead
	closed  bool
	errs    []error // errors of listeners
}

// frontend is the HTTP server of a proxy from Start or Revive until Die.
type frontend struct {
	listener net.Listener
	http     *http.Server
	closed   chan struct{} // closed by close
}

// Start runs a proxy in front of the server with this URL until the test ends. Errors fail the test.
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

// start returns a proxy that serves, on a free port.
func start(server string) (*Proxy, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("invalid URL of the server: %w", err)
	}
	// Do not modify bodies, and keep idle connections.
	base := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1000}
	p := &Proxy{faults: NewTransport(base), server: base}
	p.handler = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p.faults,
		FlushInterval: -1, // forward each event of a watch immediately
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

// URL returns the URL of the proxy, for the Host of a rest.Config. [Proxy.Revive] does not change it.
func (p *Proxy) URL() string { return "http://" + p.address }

// Script sets the script for all later requests. Nil, the initial script, causes no faults.
func (p *Proxy) Script(script Script) { p.faults.Script(script) }

// Requests returns the received requests in order. A request has its Status and Answered before the client receives
// the response.
func (p *Proxy) Requests() []Request { return p.faults.Requests() }

// Die closes the listener and all connections. Requests in progress end without a response, although the
// server may still process them. Die does not wait for them, so a [Script] may call it during a request.
func (p *Proxy) Die() {
	p.mu.Lock()
	dying := p.current
	p.current = nil
	p.mu.Unlock()
	if dying != nil {
		dying.close()
	}
}

// Revive makes the proxy listen again on its address after [Proxy.Die]. It does nothing if the proxy is not
// dead. After the end of the test it returns [http.ErrServerClosed].
func (p *Proxy) Revive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("failed to revive the proxy: %w", http.ErrServerClosed)
	}
	if p.current != nil {
		return nil
	}
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("failed to revive the proxy: %w", err)
	}
	p.serve(listener)
	return nil
}

// close ends the proxy for good, so that Revive fails from now on. It waits for all its goroutines, and returns the
// errors of serving.
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

// serve starts a frontend on a listener, in a goroutine that ends at its close. An error of serving is kept for
// close. The caller is start, or holds the mutex.
func (p *Proxy) serve(listener net.Listener) {
	f := &frontend{listener: listener, http: &http.Server{Handler: p.handler}, closed: make(chan struct{})}
	f.http.ConnState = func(conn net.Conn, state http.ConnState) { p.trackConn(f, conn, state) }
	p.current = f
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		if err := f.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, fmt.Errorf("failed to serve: %w", err))
		}
	}()
}

// trackConn counts the connections, so that close can wait for them. A connection that was accepted while the frontend
// was being closed is unknown to the HTTP server's Close, so trackConn closes it.
func (p *Proxy) trackConn(f *frontend, conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		p.running.Add(1)
		select {
		case <-f.closed:
			_ = conn.Close() // its goroutine ends with a read error
		default:
		}
	case http.StateClosed, http.StateHijacked:
		p.running.Done()
	default:
	}
}

// close closes the server and the listener. The server closes the listener itself only if Serve has been called, which
// another goroutine does. Errors are ignored, because the second close of the listener fails.
func (f *frontend) close() {
	close(f.closed)
	_ = f.http.Close()
	_ = f.listener.Close()
}
