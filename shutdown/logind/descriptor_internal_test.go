//go:build linux

package logind

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The session receives a socket whose close would block for 5 s. The session closes the socket without waiting.
func TestALingeringSocketDoesNotBlockTheSession(t *testing.T) {
	sent := lingeringSocket(t)
	before := time.Now()
	var noMessage []byte // no call waits for the descriptor
	new(descriptors).keepOrClose(noMessage, []int{sent})
	require.Less(t, time.Since(before), 2*time.Second)
}

// lingeringSocket returns the descriptor of a socket with SO_LINGER, unsent data, and a peer that reads nothing.
func lingeringSocket(t *testing.T) (descriptor int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	dialled, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	peer, err := listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, peer.Close()) })
	socket := dialled.(*net.TCPConn)
	require.NoError(t, socket.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = socket.Write(make([]byte, 64<<20)) // more than the buffers take
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, socket.SetLinger(5))
	file, err := socket.File()
	require.NoError(t, err)
	descriptor, err = unix.Dup(int(file.Fd()))
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.NoError(t, socket.Close())
	return descriptor
}

// Two calls, with the serial numbers 1 and 2, wait for a descriptor each. A third descriptor has come for the call 3, for
// which nobody waits any more. Each call takes its own descriptor, and the last one closes the third.
func TestTheLastCallClosesLeftOverDescriptors(t *testing.T) {
	open := func() *os.File {
		file, err := os.Open(os.DevNull)
		require.NoError(t, err)
		return file
	}
	first, second, late := open(), open(), open()
	d := descriptors{expected: 2, kept: map[uint32]*os.File{1: first, 2: second, 3: late}}
	require.Same(t, first, d.take(1))
	require.Same(t, second, d.take(2))
	require.ErrorIs(t, late.Close(), os.ErrClosed)
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
}
