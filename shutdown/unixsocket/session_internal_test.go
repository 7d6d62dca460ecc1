//go:build go1.25

package unixsocket

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A host announces a shutdown, a second one cancels it, and a third one announces a reboot, before the manager reads an
// event. The first host reads no replies. The events come in the order of the lines, and Pending agrees with those that the
// manager has received: it returns the first shutdown until the cancellation is received, and the reboot in the end, however
// long the replies to the cancellation take.
func TestLinesCountInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, err := New(Options{Path: "/unused"})
		require.NoError(t, err)
		src.hosts.addLock()
		s := &session{source: src, events: make(chan source.Event), eventLock: make(chan struct{}, 1)}
		s.ctx, s.cancel = context.WithCancel(t.Context())
		for _, line := range []string{"poweroff", "cancel", "reboot"} {
			host, agent := net.Pipe()
			defer func() { _ = host.Close() }()
			if line != "poweroff" {
				go func() { _, _ = io.Copy(io.Discard, host) }()
			}
			s.goroutines.Go(func() { s.handleLine(line, agent) })
			synctest.Wait()
			pending, err := s.Pending(t.Context())
			require.NoError(t, err)
			require.Equal(t, source.KindPoweroff, pending.Kind)
		}
		require.Equal(t, source.KindPoweroff, (<-s.events).Kind)
		require.True(t, (<-s.events).Cancelled)
		require.Equal(t, source.KindReboot, (<-s.events).Kind)
		s.goroutines.Wait()
		pending, err := s.Pending(t.Context())
		require.NoError(t, err)
		require.Equal(t, source.KindReboot, pending.Kind)
	})
}

// The session ends while a line waits for the event of an earlier one to be received. The host is told to send it again.
func TestALineAtTheEndOfASessionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, err := New(Options{Path: "/unused"})
		require.NoError(t, err)
		src.hosts.addLock()
		s := &session{source: src, events: make(chan source.Event), eventLock: make(chan struct{}, 1)}
		s.ctx, s.cancel = context.WithCancel(t.Context())
		s.goroutines.Go(func() { s.handleLine("poweroff", nil) })
		synctest.Wait()
		host, agent := net.Pipe()
		s.goroutines.Go(func() { s.handleLine("cancel", agent) })
		synctest.Wait()
		s.cancel()
		reply, err := bufio.NewReader(host).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, sessionEndingReply+"\n", reply)
		s.goroutines.Wait()
		pending, err := s.Pending(t.Context())
		require.NoError(t, err)
		require.Equal(t, source.KindPoweroff, pending.Kind, "it is not cancelled")
		require.NoError(t, host.Close())
	})
}
