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

// Proxy listens on a port of 127.0.0.1, from [Start] to the end of the test. All
// methods may be called concurrently.
type Proxy struct {
	faults  *Transport
	server  *http.Transport // the connections to the server
	handler http.Handler
	address string         // of the listener, in all lives
	running sync.WaitGroup // listeners and connections

	mu     sync.Mutex // guards all below
	life   *life      // nil: dead
	closed bool
	errs   []error // of listeners that ended by themselves
}

// life is a proxy from its start or revival to its death.
type life struct {
	listener net.Listener
	http     *http.Server
	over     chan struct{} // closed at its end
}

// Start puts a proxy before the server of a URL until the end of the test. Errors fail
// the test.
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
	// The bodies pass as they are, and as many connections as there are requests stay.
	base := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1000}
	p := &Proxy{faults: NewTransport(base), server: base}
	p.handler = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p.faults,
		FlushInterval: -1, // a watch's event at once
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // closes the connection, and logs nothing
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	p.address = listener.Addr().String()
	p.begin(listener)
	return p, nil
}

// URL is where the proxy listens, as rest.Config has it in its Host; the same for all
// its lives.
func (p *Proxy) URL() string { return "http://" + p.address }

// Script sets what is asked for each request from now on; nil: no faults, as in the
// beginning.
func (p *Proxy) Script(script Script) { p.faults.Script(script) }

// Requests are those that have arrived, with their bodies, in order. A client that has
// an answer finds it here.
func (p *Proxy) Requests() []Request { return p.faults.Requests() }

// Die closes the listener and all connections: from now on connections are refused.
// Requests that are under way end without an answer, though the server behind may still
// carry them out. Die does not wait for them, so that a script may call it.
func (p *Proxy) Die() {
	p.mu.Lock()
	l := p.life
	p.life = nil
	p.mu.Unlock()
	if l != nil {
		l.end()
	}
}

// Revive lets a proxy that has died listen on its address again. An error is that of
// the listener; a proxy that lives is left as it is, one whose test is over gives
// [http.ErrServerClosed].
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
	p.begin(listener)
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

// begin serves on a listener. The mutex is held, or nobody else knows the proxy yet.
func (p *Proxy) begin(listener net.Listener) {
	l := &life{listener: listener, http: &http.Server{Handler: p.handler}, over: make(chan struct{})}
	l.http.ConnState = func(conn net.Conn, state http.ConnState) { p.count(l, conn, state) }
	p.life = l
	p.running.Go(func() {
		if err := l.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, fmt.Errorf("failed to serve: %w", err))
		}
	})
}

// count keeps account of connections, so that close can wait for them. One that is
// accepted when the others have been closed is closed here.
func (p *Proxy) count(l *life, conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		p.running.Add(1)
		select {
		case <-l.over:
			_ = conn.Close() // its goroutine sees it
		default:
		}
	case http.StateClosed, http.StateHijacked:
		p.running.Done()
	default:
	}
}

// end closes the listener too, which the server closes only if it has begun to use
// it. What these calls give is of no more use.
func (l *life) end() {
	close(l.over)
	_ = l.http.Close()
	_ = l.listener.Close()
}
