package agent_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// deafListener fails at the first client.
type deafListener struct{ net.Listener }

func (deafListener) Accept() (net.Conn, error) { return nil, errors.New("the network is gone") }
func (deafListener) Close() error              { return nil }

func TestServerThatFailsEndsTheAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("web", 0, "")
		b.opts.Listener = deafListener{}
		b.run()
		err := b.end()
		require.ErrorContains(t, err, "failed to serve metrics: the network is gone")
		require.Empty(t, b.runtime.Stops(), "the pods are left as they are")
	})
}

// quietListener has no clients.
type quietListener struct{ closed chan struct{} }

func (l quietListener) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l quietListener) Close() error              { close(l.closed); return nil }
func (quietListener) Addr() net.Addr              { return &net.TCPAddr{} }

func TestServerEndsWithTheAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		listener := quietListener{closed: make(chan struct{})}
		b.pod("web", 0, "")
		b.opts.Listener = listener
		b.run()
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		<-listener.closed
	})
}
