package apistatustest

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestALateConnectionIsClosed is about one that was accepted at the moment of the
// server's death, when the others had been closed.
func TestALateConnectionIsClosed(t *testing.T) {
	s, dead := &Server{}, &life{over: make(chan struct{})}
	close(dead.over)
	conn, client := net.Pipe()
	s.count(dead, conn, http.StateNew)
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	s.count(dead, conn, http.StateClosed)
	s.running.Wait()
}

func TestALivingConnectionIsLeftAlone(t *testing.T) {
	s, l := &Server{}, &life{over: make(chan struct{})}
	conn, client := net.Pipe()
	s.count(l, conn, http.StateNew)
	go func() {
		_, _ = conn.Write([]byte("x")) // the read below tells
		s.count(l, conn, http.StateClosed)
	}()
	_, err := client.Read(make([]byte, 1))
	require.NoError(t, err)
	s.running.Wait()
}
