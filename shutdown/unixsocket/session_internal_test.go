//go:build go1.25

package unixsocket

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A host announces a shutdown and another one cancels it, before the manager reads an event. Pending must agree with
// the events that the manager has received: it returns the shutdown until the cancellation is received.
func TestLinesCountInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, err := New(Options{Path: "/unused"})
		require.NoError(t, err)
		src.hosts.addLock()
		s := &session{source: src, events: make(chan source.Event), eventLock: make(chan struct{}, 1)}
		s.ctx, s.cancel = context.WithCancel(t.Context())
		for _, line := range []string{"poweroff", "cancel"} {
			host, agent := net.Pipe()
			defer func() { _ = host.Close() }()
			go func() { _, _ = io.Copy(io.Discard, host) }()
			s.goroutines.Go(func() { s.handleLine(line, agent) })
			synctest.Wait()
			pending, err := s.Pending(t.Context())
			require.NoError(t, err)
			require.Equal(t, source.KindPoweroff, pending.Kind)
		}
		require.False(t, (<-s.events).Cancelled)
		require.True(t, (<-s.events).Cancelled)
		s.goroutines.Wait()
		_, err = s.Pending(t.Context())
		require.Error(t, err, "after the cancellation nothing is announced")
	})
}
