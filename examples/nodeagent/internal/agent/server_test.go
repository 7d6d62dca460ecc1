package agent_test

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// failingListener is a listener whose Accept fails.
type failingListener struct{ net.Listener }

func (failingListener) Accept() (net.Conn, error) { return nil, errors.New("the network is gone") }
func (failingListener) Close() error              { return nil }

func TestServerThatFailsEndsTheAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("web", 0, "")
		b.opts.Listener = failingListener{}
		b.run()
		err := b.waitEnd()
		require.ErrorContains(t, err, "failed to serve metrics: the network is gone")
		require.Empty(t, b.runtime.Stops(), "the pods run on")
	})
}

// idleListener is a listener without clients.
type idleListener struct{ closed chan struct{} }

func (l idleListener) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l idleListener) Close() error              { close(l.closed); return nil }
func (idleListener) Addr() net.Addr              { return &net.TCPAddr{} }

func TestServerEndsWithTheAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		listener := idleListener{closed: make(chan struct{})}
		b.addPod("web", 0, "")
		b.opts.Listener = listener
		b.run()
		require.NoError(t, b.terminate())
		<-listener.closed
	})
}
