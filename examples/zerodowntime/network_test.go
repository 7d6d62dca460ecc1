package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// pipes is a network without sockets, for synctest bubbles: the time of a bubble stands still while a
// goroutine waits for a socket, but not while it waits for a pipe.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]pipeListener // by address; closed listeners stay
	limit     int                     // how many listeners there can be
}

// pipeNetwork returns a network of pipes in which at most this number of servers can be started.
func pipeNetwork(maxServers int) network {
	p := &pipes{listeners: map[string]pipeListener{}, limit: maxServers}
	return network{listen: p.listen, dial: p.dial}
}

// listen returns a listener with a new address, or EADDRINUSE if there are already as many as possible.
func (p *pipes) listen(context.Context) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.listeners) == p.limit {
		return nil, syscall.EADDRINUSE
	}
	const bufferSize = 1 << 12
	l := pipeListener{bufconn.Listen(bufferSize), fmt.Sprintf("server-%d:80", len(p.listeners)+1)}
	p.listeners[l.address] = l
	return l, nil
}

// dial connects to a listener, which fails if the listener is closed.
func (p *pipes) dial(ctx context.Context, _, address string) (net.Conn, error) {
	p.mu.Lock()
	l, found := p.listeners[address]
	p.mu.Unlock()
	if !found {
		return nil, syscall.EHOSTUNREACH
	}
	return l.DialContext(ctx)
}

// pipeListener is a listener of pipes. It is also its own net.Addr.
type pipeListener struct {
	*bufconn.Listener

	address string
}

func (l pipeListener) Addr() net.Addr  { return l }
func (l pipeListener) Network() string { return "pipe" }
func (l pipeListener) String() string  { return l.address }

// The other tests use pipes. This one uses the sockets of the program itself: a request is answered, and after
// the container was stopped, a new connection is refused.
func TestRequestsPassTheLoopbackNetwork(t *testing.T) {
	n := newNode(loopbackNetwork())
	server, err := n.start(t.Context(), "web", http.HandlerFunc(answer))
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DialContext: n.network.dial, DisableKeepAlives: true}}
	require.NoError(t, post(t.Context(), client, "http://"+server))
	const timeout = 60 // seconds, far more than it takes
	require.NoError(t, n.StopContainer(t.Context(), "web", timeout))
	require.ErrorIs(t, n.StopContainer(t.Context(), "web", timeout), lifecycle.ErrContainerNotFound)
	require.ErrorIs(t, post(t.Context(), client, "http://"+server), syscall.ECONNREFUSED, "a new connection")
	require.NoError(t, n.close())
}
