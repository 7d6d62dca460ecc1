package unixsocket_test

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// 400 connections send half a line and wait. Another client must still get its reply. The agent closes all but 64 of the
// connections, which limits its descriptors. So at most 64 goroutines are left, one for each, and a few of the session.
func TestIncompleteLinesBlockNobody(t *testing.T) {
	session, path := newSession(t)
	before := runtime.NumGoroutine()
	for range 400 {
		h := dial(t, path)
		_, err := h.conn.Write([]byte("powero"))
		require.NoError(t, err)
	}

	h := dial(t, path)
	h.send("reboot")
	require.Equal(t, source.KindReboot, nextEvent(t, session).Kind)
	h.requireReply("released")
	const limit = 64 + 4 // connections, and room for goroutines of the session
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+limit }, testTimeout, time.Millisecond)
}

// A connection that announces nothing within the idle time, 50 ms in this test, gets an error and is closed.
func TestAnIdleConnectionIsClosed(t *testing.T) {
	src, path := newSource(t)
	src.SetIdleTimeout(50 * time.Millisecond)
	connect(t, src)
	h := dial(t, path)
	h.requireReply("error: no line within 50ms")
	_, err := h.in.ReadByte()
	require.ErrorIs(t, err, io.EOF, "closed")
}

// A connection that waits for its reply is not idle. It stays open for longer than the idle time, 50 ms in this test.
func TestAWaitingConnectionIsNotIdle(t *testing.T) {
	src, path := newSource(t)
	src.SetIdleTimeout(50 * time.Millisecond)
	session := connect(t, src)
	lock := takeLock(t, session)
	h := announceShutdown(t, path, "poweroff", session)
	require.NoError(t, h.conn.SetReadDeadline(time.Now().Add(200*time.Millisecond))) // four times the 50 ms
	_, err := h.in.Peek(1)
	require.ErrorContains(t, err, "timeout", "there is neither an error nor the end of the connection")

	require.NoError(t, h.conn.SetReadDeadline(time.Now().Add(testTimeout)))
	require.NoError(t, lock.Close())
	h.requireReply("released")
}

// A line of more than 256 bytes gets an error, and other clients still reach the agent.
func TestALongLineIsRefused(t *testing.T) {
	session, path := newSession(t)
	h := dial(t, path)
	h.send(strings.Repeat("x", 1000))
	h.requireReply("error: a line is longer than 256 bytes")
	requireReaches(t, path, session)
}

// At most 64 clients may wait for the reply. The next client gets an error instead, but its announcement is an event all the
// same. The 64 clients get their reply when the lock is closed.
func TestTheNumberOfWaitingConnectionsIsLimited(t *testing.T) {
	session, path := newSession(t)
	lock := takeLock(t, session)
	var waiting []*client
	for range 64 {
		h := announceShutdown(t, path, "halt", session)
		waiting = append(waiting, h)
	}

	h := announceShutdown(t, path, "halt", session)
	h.requireReply("error: too many connections wait for the reply")
	require.NoError(t, lock.Close())
	for _, h := range waiting {
		h.requireReply("released")
	}
}

// A client cancels a shutdown, and the session ends before the manager has received the event. The client is told to cancel
// again, and the shutdown stays pending for the next session.
func TestACancellationAtTheEndOfASessionHasNoEffect(t *testing.T) {
	src, path := newSource(t)
	session := connect(t, src)
	h := announceShutdown(t, path, "reboot", session)
	h.requireReply("released")
	h.send("cancel")
	require.Eventually(t, func() bool { // the shutdown is no longer pending, but nobody receives the event of the cancellation
		_, err := session.Pending(t.Context())
		return err != nil
	}, testTimeout, time.Millisecond)

	require.NoError(t, session.Close())
	h.requireReply("error: the agent is reopening its socket, send the line again")
	event, err := connect(t, src).Pending(t.Context())
	require.NoError(t, err)
	require.Equal(t, source.KindReboot, event.Kind)
}

// A client reads no replies, and sends invalid lines until the buffers are full, which a timeout of 300 ms shows. Close must
// not wait for the client: it drops a reply after 1 s. The test allows 5 s, for a busy machine.
func TestAClientThatDoesNotReadDoesNotBlockClose(t *testing.T) {
	src, path := newSource(t)
	session, err := src.Connect(t.Context())
	require.NoError(t, err)
	client := dial(t, path)
	require.NoError(t, client.conn.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
	for err == nil {
		_, err = client.conn.Write([]byte(strings.Repeat("d\n", 100)))
	}
	began := time.Now()
	require.NoError(t, session.Close())
	require.Less(t, time.Since(began), 5*time.Second)
}
