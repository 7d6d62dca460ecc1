//go:build go1.25

package unixsocket

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A host announces a power off, a second one cancels it, and a third one announces a reboot, before the manager reads an
// event. The first host reads no replies. The events come in the order of the lines. Pending returns the power off as long
// as the manager has received no event, and the reboot when it has received all of them.
func TestLinesCountInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lockedSession(t)
		for _, line := range []string{"poweroff", "cancel", "reboot"} {
			host, agent := net.Pipe()
			defer func() { _ = host.Close() }()
			if line != "poweroff" { // its host reads no replies
				go func() { _, _ = io.Copy(io.Discard, host) }()
			}
			s.goroutines.Go(func() { s.handleLine(line, agent) })
			synctest.Wait()
			pending, err := s.Pending(t.Context())
			require.NoError(t, err)
			require.Equal(t, source.KindPoweroff, pending.Kind, "the manager has received no event")
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

// A host announces a power off, whose event nobody receives. So the line "cancel" of another host must wait. The session
// ends, and that host is told to send its line again. The power off stays pending.
func TestALineAtTheEndOfASessionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lockedSession(t)
		s.goroutines.Go(func() { s.handleLine("poweroff", nil) }) // waits, because nobody receives its event
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

// A host has sent a line without its end, which may be the first part of a longer line, such as "poweroff 90". Then it sends
// nothing for 10 s, the session ends, or its connection is closed as the oldest. The part announces nothing.
func TestAnIncompleteLineAnnouncesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(s *session, host, agent net.Conn)
		reply string
	}{
		"no more for 10 s": {
			end:   func(*session, net.Conn, net.Conn) { <-time.After(idleTimeout) },
			reply: "error: no line within 10s\n",
		},
		"the session ends":    {end: func(s *session, _, _ net.Conn) { s.cancel() }},
		"the agent closes it": {end: func(_ *session, _, agent net.Conn) { _ = agent.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // the end of a session and a line may come in either order
				synctest.Test(t, func(t *testing.T) {
					s := lockedSession(t)
					defer s.cancel()
					host, agent := net.Pipe()
					defer func() { _ = host.Close() }()
					s.goroutines.Go(func() { s.serve(agent) })
					_, err := host.Write([]byte("poweroff 9"))
					require.NoError(t, err)
					reply := make(chan string, 1)
					go func() {
						text, _ := io.ReadAll(host) // until the agent closes the connection
						reply <- string(text)
					}()
					test.end(s, host, agent)
					synctest.Wait()
					_, err = s.Pending(t.Context())
					require.ErrorIs(t, err, errors.ErrUnsupported, "no shutdown is pending")
					require.Equal(t, test.reply, <-reply)
					s.goroutines.Wait()
				})
			}
		})
	}
}
