//go:build go1.25

package notice_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// TestMain configures a proxy that no request may use: inBubble fails a test that has connected to any address but the
// metadata service's. It does so before all tests, because net/http reads HTTP_PROXY only once.
func TestMain(m *testing.M) {
	if err := os.Setenv("HTTP_PROXY", "http://10.0.0.2:3128"); err != nil {
		panic(err)
	}
	m.Run()
}

// pipes is a listener for a bubble: its connections are pipes, because a bubble cannot wait for a socket.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	mu     sync.Mutex
	dialed map[string]bool
}

// Accept returns the other end of the next connection that dial makes.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr returns no useful address: nobody connects to one.
func (*pipes) Addr() net.Addr { return &net.UnixAddr{} }

// dial connects the client by a pipe, whose other end Accept returns, and records the address.
func (p *pipes) dial(ctx context.Context, _, address string) (net.Conn, error) {
	p.mu.Lock()
	p.dialed[address] = true
	p.mu.Unlock()
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// world is a metadata service and the functions that Watch calls.
type world struct {
	t        *testing.T
	service  http.Handler
	listener *pipes
	provider notice.Provider
	stop     context.CancelFunc
	ended    chan error

	mu       sync.Mutex
	fault    http.HandlerFunc // answers instead of the service; nil: the service answers
	requests int
	events   []source.Event // those that announce got
	refusal  error          // announce returns it; nil: announce accepts events
	failures []string       // the errors that OnError got
}

// inBubble runs a test in a synctest bubble, whose clock only moves when all goroutines wait. The service is not watched
// before the test calls watch. At the end inBubble checks that no connection is open, and that Watch has connected to
// nothing but the metadata address: to no proxy and no target of a redirect.
func inBubble[S http.Handler](t *testing.T, provider notice.Provider, service S, test func(t *testing.T, w *world, service S)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, service: service, provider: provider, listener: &pipes{conns: make(chan net.Conn), closed: make(chan struct{}), dialed: map[string]bool{}}}
		w.provider.Dial = w.listener.dial
		w.provider.OnError = func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failures = append(w.failures, err.Error())
		}
		var openConnections atomic.Int32
		server := &http.Server{Handler: w, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				openConnections.Add(1)
			case http.StateClosed, http.StateHijacked:
				openConnections.Add(-1)
			default:
			}
		}}
		served := make(chan error, 1)
		go func() { served <- server.Serve(w.listener) }()
		defer func() {
			if w.stop != nil {
				_ = w.end() // a test that cares about the error has called end itself
			}
			synctest.Wait()
			require.Zero(t, openConnections.Load(), "open connections")
			require.NoError(t, server.Close())
			require.ErrorIs(t, <-served, http.ErrServerClosed)
			require.Subset(t, []string{"169.254.169.254:80"}, slices.Collect(maps.Keys(w.listener.dialed)), "no other connection is made")
		}()
		test(t, w, service)
	})
}

// ServeHTTP counts the request, and has it answered by the fault of failService, or by the service if there is none.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.requests++
	fault := w.fault
	w.mu.Unlock()
	if fault != nil {
		fault(rw, r)
		return
	}
	w.service.ServeHTTP(rw, r)
}

// watch starts Watch and returns when it waits for something, such as the next read.
func (w *world) watch() {
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop, w.ended = stop, make(chan error, 1)
	go func() { w.ended <- notice.Watch(ctx, w.provider, w.announce) }()
	synctest.Wait()
}

// end ends Watch and returns its error.
func (w *world) end() error {
	w.stop()
	w.stop = nil
	return <-w.ended
}

// announce records an event, or refuses it with failAnnounce's error.
func (w *world) announce(event source.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != nil {
		return w.refusal
	}
	w.events = append(w.events, event)
	return nil
}

// failService makes the service fail; nil: it works again.
func (w *world) failService(fault http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fault
}

// failAnnounce makes announce fail; nil: it works again.
func (w *world) failAnnounce(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusal = err
}

// newAnnouncements returns what was announced since the last call.
func (w *world) newAnnouncements() []source.Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// newErrors returns the errors passed to OnError since the last call.
func (w *world) newErrors() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	failures := w.failures
	w.failures = nil
	return failures
}

// newRequests returns the number of requests since the last call.
func (w *world) newRequests() int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.requests
	w.requests = 0
	return n
}

// advance lets time pass, and waits until all goroutines are blocked.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// longestPause is the longest time between two attempts after a failure.
const longestPause = 10 * time.Second

// errNotRunning stands for the error of a manager's Trigger before Run.
var errNotRunning = errors.New("not running")

// at returns the time d from now, in whole seconds, as the providers write it.
func at(d time.Duration) time.Time { return time.Now().Add(d).UTC().Truncate(time.Second) }

// cancelled returns what newAnnouncements returns after the notice of this origin was withdrawn.
func cancelled(origin string) []source.Event {
	return []source.Event{{Cancelled: true, Origin: origin}}
}
