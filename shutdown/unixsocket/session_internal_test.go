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

// A client announces a power off, a second one cancels it, and a third one announces a reboot, before the manager reads an
// event. The first client reads no replies. The events come in the order of the lines. Pending returns the power off as long
// as the manager has received no event, and the reboot when it has received all of them.
func TestLinesCountInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sessionWithLock(t)
		for _, line := range []string{"poweroff", "cancel", "reboot"} {
			client, agent := net.Pipe()
			defer func() { _ = client.Close() }()
			if line != "poweroff" { // its client reads no replies
				go func() { _, _ = io.Copy(io.Discard, client) }()
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

// A client announces a power off, and nobody receives the event, so the session is busy. Another client sends the line "cancel", and
// has to wait. When the session ends, the waiting client is told to send the line again. The power off is not cancelled.
func TestALineThatWaitsWhenTheSessionEndsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sessionWithLock(t)
		s.goroutines.Go(func() { s.handleLine("poweroff", nil) }) // waits, because nobody receives its event
		synctest.Wait()
		client, agent := net.Pipe()
		s.goroutines.Go(func() { s.handleLine("cancel", agent) })
		synctest.Wait()
		s.cancel() // the session ends
		reply, err := bufio.NewReader(client).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, sessionEndingReply+"\n", reply)
		s.goroutines.Wait()
		pending, err := s.Pending(t.Context())
		require.NoError(t, err)
		require.Equal(t, source.KindPoweroff, pending.Kind, "it is not cancelled")
		require.NoError(t, client.Close())
	})
}

// A client has sent a line without its end, which may be the first part of a longer line, such as "poweroff 90". Then it sends
// nothing for 10 s, the session ends, or its connection is closed as the oldest. The part announces nothing.
func TestAnIncompleteLineAnnouncesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(s *session, client, agent net.Conn)
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
					s := sessionWithLock(t)
					defer s.cancel()
					client, agent := net.Pipe()
					defer func() { _ = client.Close() }()
					s.goroutines.Go(func() { s.serve(agent) })
					_, err := client.Write([]byte("poweroff 9"))
					require.NoError(t, err)
					reply := make(chan string, 1)
					go func() {
						text, _ := io.ReadAll(client) // until the agent closes the connection
						reply <- string(text)
					}()
					test.end(s, client, agent)
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
