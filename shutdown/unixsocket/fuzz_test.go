//go:build go1.25

package unixsocket

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// FuzzParse checks that every line is a shutdown of a known kind whose deadline is not in the past, a
// cancellation, or an error.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"", "shutdown", "poweroff 30", "reboot 0", "kexec -1", "soft-reboot 31536000", "halt 31536001", "cancel", "cancel 1", "poweroff 1 2", "poweroff 9223372037", "POWEROFF", "\x00", "shutdown\t5\r", "poweroff ٣"} {
		f.Add(line)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	kinds := []source.Kind{source.KindUnknown, source.KindPoweroff, source.KindReboot, source.KindHalt, source.KindKexec, source.KindSoftReboot}
	f.Fuzz(func(t *testing.T, line string) {
		event, err := parse(line, now)
		if err != nil {
			require.Zero(t, event)
			return
		}
		require.Equal(t, origin, event.Origin)
		if event.Cancelled {
			require.Equal(t, source.Event{Cancelled: true, Origin: origin}, event)
			return
		}
		require.Contains(t, kinds, event.Kind)
		if !event.Deadline.IsZero() {
			wait := event.Deadline.Sub(now)
			require.GreaterOrEqual(t, wait, time.Duration(0))
			require.LessOrEqual(t, wait, maxDelaySeconds*time.Second)
		}
	})
}

// FuzzServe checks that every connection, whatever it sends, ends with the session at the latest, and that the session has
// no more events than lines.
func FuzzServe(f *testing.F) {
	for _, text := range []string{"poweroff 30\ncancel\n", "poweroff", "\n\n\n", "reboot 5\nreboot 6\nreboot", "cancel\nshutdown 99999999999999999999\n", string(make([]byte, 1000)), "reboot\n" + string(make([]byte, 1000)), "halt\r\n\xff\xfe\n"} {
		f.Add([]byte(text), byte(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, size byte) {
		pieceSize := int(size) + 1 // at least 1
		serveAll(t, text, pieceSize)
	})
}

// sessionWithLock returns a session that has a lock and no socket.
func sessionWithLock(t *testing.T) *session {
	t.Helper()
	src, err := New(Options{Path: "/unused"})
	require.NoError(t, err)
	src.hosts.addLock()
	s := &session{source: src, events: make(chan source.Event), eventLock: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(t.Context())
	return s
}

// serveAll sends a text, in pieces of pieceSize bytes, to a session with a lock, and then ends the session. It requires
// that no more events come than the text has lines, and that no connection is left.
func serveAll(t *testing.T, text []byte, pieceSize int) {
	t.Helper()
	s := sessionWithLock(t)
	received := make(chan int)
	go func() {
		events := 0
		for range s.events {
			events++
		}
		received <- events
	}()
	client, agent := net.Pipe()
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(io.Discard, client) // until either end is closed
	}()
	require.Nil(t, s.unannounced.add(agent))
	s.goroutines.Go(func() { s.serve(agent) })
	// After too long a line the session reads no more from a client that waits. A pipe, unlike a socket, has no buffer, so
	// further writes would block without a deadline.
	require.NoError(t, client.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for piece := range slices.Chunk(text, pieceSize) {
		if _, err := client.Write(piece); err != nil {
			break // the agent has closed the connection or reads no more
		}
	}
	require.NoError(t, replyAndClose(s.source.hosts.removeLock(), "released"))
	s.cancel()
	s.goroutines.Wait()
	close(s.events)
	lines := 1 + bytes.Count(text, []byte("\n"))
	require.LessOrEqual(t, <-received, lines)
	require.Empty(t, s.unannounced.list)
	_ = client.Close() // the agent may have closed its end
	_ = agent.Close()
	<-answers
}
