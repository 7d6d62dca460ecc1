package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipes is a network without sockets, for bubbles. A goroutine that waits for a socket would stop their time.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener // by address, also those that are closed
	most      int                      // so many can listen, and no more
}

// pipeNetwork returns a network in which a number of servers can be started.
func pipeNetwork(most int) network {
	p := &pipes{listeners: map[string]*pipeListener{}, most: most}
	return network{listen: p.listen, dial: p.dial}
}

func (p *pipes) listen(context.Context) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.listeners) == p.most {
		return nil, syscall.EADDRINUSE
	}
	l := &pipeListener{address: fmt.Sprintf("server-%d:80", len(p.listeners)+1), accepted: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	p.listeners[l.address] = l
	return l, nil
}

func (p *pipes) dial(ctx context.Context, _, address string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[address]
	p.mu.Unlock()
	if l == nil {
		return nil, syscall.EHOSTUNREACH
	}
	client, server := net.Pipe()
	select {
	case l.accepted <- server:
		return client, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// pipeListener is a net.Listener and its own net.Addr.
type pipeListener struct {
	address  string
	accepted chan net.Conn
	closed   chan struct{}
	close    func()
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.close()
	return nil
}

func (l *pipeListener) Addr() net.Addr  { return l }
func (l *pipeListener) Network() string { return "pipe" }
func (l *pipeListener) String() string  { return l.address }

// The other tests use pipes; this one shows that the program's own network works.
func TestRequestsPassTheLoopbackNetwork(t *testing.T) {
	n := newNode(loopback())
	server, err := n.start(t.Context(), "web", okHandler())
	require.NoError(t, err)
	require.NoError(t, post(t.Context(), newClient(t, n.network), "http://"+server))
	require.NoError(t, n.StopContainer(t.Context(), "web", 60))
	require.ErrorIs(t, post(t.Context(), newClient(t, n.network), "http://"+server), syscall.ECONNREFUSED, "a new connection")
	require.NoError(t, n.close())
}
