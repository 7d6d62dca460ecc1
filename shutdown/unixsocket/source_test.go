package unixsocket_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
	"github.com/kubegrace/kubegrace/shutdown/unixsocket"
)

// testTimeout is the longest that a test waits for anything, on a busy machine.
const testTimeout = 30 * time.Second

// newSource returns a source whose clients wait 20 s unless they say another time.
func newSource(t *testing.T) (src *unixsocket.Source, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shutdown.sock")
	src, err := unixsocket.New(unixsocket.Options{Path: path, Delay: 20 * time.Second})
	require.NoError(t, err)
	return src, path
}

// connect returns a session that is closed when the test ends.
func connect(t *testing.T, src *unixsocket.Source) source.Session {
	t.Helper()
	session, err := src.Connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	return session
}

// newSession returns a session of newSource that is closed when the test ends.
func newSession(t *testing.T) (session source.Session, path string) {
	t.Helper()
	src, path := newSource(t)
	return connect(t, src), path
}

// client is a connection to the agent's socket, such as that of an init script that announces a shutdown.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// dial connects to the agent's socket. The connection is closed when the test ends.
func dial(t *testing.T, path string) *client {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	require.NoError(t, conn.SetDeadline(time.Now().Add(testTimeout)))
	return &client{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// announceShutdown sends a line from a new client, and waits for the event of the session.
func announceShutdown(t *testing.T, path, line string, session source.Session) *client {
	t.Helper()
	h := dial(t, path)
	h.send(line)
	nextEvent(t, session)
	return h
}

// send sends a line to the agent.
func (h *client) send(line string) {
	h.t.Helper()
	_, err := h.conn.Write([]byte(line + "\n"))
	require.NoError(h.t, err)
}

// requireReply waits for a line of the agent, which must be this one.
func (h *client) requireReply(line string) {
	h.t.Helper()
	got, err := h.in.ReadString('\n')
	require.NoError(h.t, err)
	require.Equal(h.t, line+"\n", got)
}

// takeLock takes a lock. The test closes it, or ends without doing so.
func takeLock(t *testing.T, session source.Session) io.Closer {
	t.Helper()
	lock, err := session.Inhibit(t.Context())
	require.NoError(t, err)
	return lock
}

// requireCancelled requires that the next event cancels the shutdown.
func requireCancelled(t *testing.T, session source.Session) {
	t.Helper()
	require.True(t, nextEvent(t, session).Cancelled)
}

// nextEvent returns the next event. It fails if the session has ended.
func nextEvent(t *testing.T, session source.Session) source.Event {
	t.Helper()
	select {
	case event, ok := <-session.Events():
		require.True(t, ok)
		return event
	case <-time.After(testTimeout):
		t.Fatal("no event")
		return source.Event{}
	}
}

// New rejects a path that is missing, relative or too long for a socket, and a negative delay. A Source that New has not
// made is an error of Connect.
func TestInvalidOptionsAreErrors(t *testing.T) {
	for want, options := range map[string]unixsocket.Options{
		"Path is required":               {},
		"must be an absolute path":       {Path: "agent.sock"},
		"Path must not have more than ":  {Path: "/" + strings.Repeat("x", 200)},
		"Delay must not be negative: -1": {Path: "/x", Delay: -1},
	} {
		_, err := unixsocket.New(options)
		require.ErrorContains(t, err, want)
	}
	for _, notMade := range []*unixsocket.Source{nil, {}} {
		_, err := notMade.Connect(t.Context())
		require.ErrorContains(t, err, "not made with New")
	}
}

// No shutdown is pending until a client announces one, here a reboot in 90 s. The announcement is an event of the session, and
// the event is then pending.
func TestAnAnnouncementIsAnEventAndPending(t *testing.T) {
	session, path := newSession(t)
	_, err := session.Pending(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	before := time.Now()
	dial(t, path).send("reboot 90")
	event := nextEvent(t, session)
	require.Equal(t, source.KindReboot, event.Kind)
	require.Equal(t, "unixsocket", event.Origin)
	require.WithinRange(t, event.Deadline, before.Add(90*time.Second), time.Now().Add(90*time.Second))
	pending, err := session.Pending(t.Context())
	require.NoError(t, err)
	require.Equal(t, event, *pending)
}

// A client announces a reboot while a lock is held, and a second lock is taken. The reply comes only when both locks are
// closed; a second Close of the first lock does not count.
func TestTheReplyIsSentWhenTheLastLockIsClosed(t *testing.T) {
	session, path := newSession(t)
	lock := takeLock(t, session)
	h := announceShutdown(t, path, "reboot", session)
	second := takeLock(t, session)
	require.NoError(t, lock.Close())
	require.NoError(t, lock.Close(), "a second Close")
	require.NoError(t, h.conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := h.in.Peek(1)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "no reply: one lock is held")

	require.NoError(t, h.conn.SetReadDeadline(time.Now().Add(testTimeout)))
	require.NoError(t, second.Close())
	h.requireReply("released")
}

// A client waits for the reply to its announcement, because a lock is held. Another client cancels the shutdown, and the waiting
// client gets the reply "cancelled". No shutdown is pending any more.
func TestCancelReleasesTheWaitingClients(t *testing.T) {
	session, path := newSession(t)
	takeLock(t, session)
	waiting, cancelling := dial(t, path), dial(t, path)
	waiting.send("poweroff")
	nextEvent(t, session)
	cancelling.send("cancel")
	requireCancelled(t, session)
	waiting.requireReply("cancelled")
	_, err := session.Pending(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// An invalid line gets an error and is no event. The session has a lock, so the client would wait after a valid line.
func TestInvalidLinesChangeNothing(t *testing.T) {
	session, path := newSession(t)
	takeLock(t, session)
	h := dial(t, path)
	for line, want := range map[string]string{
		"":                 "error: the line is empty",
		"dance":            "error: kind \"dance\" is not one of shutdown, poweroff, reboot, halt, kexec, soft-reboot",
		"poweroff soon":    "error: seconds \"soon\" is not a number from 0 to 31536000",
		"poweroff -1":      "error: seconds \"-1\" is not a number from 0 to 31536000",
		"poweroff 1 2":     "error: \"poweroff 1 2\" is neither KIND [SECONDS] nor cancel",
		"cancel poweroff":  "error: \"cancel poweroff\" is neither KIND [SECONDS] nor cancel",
		"poweroff 1e99999": "error: seconds \"1e99999\" is not a number from 0 to 31536000",
	} {
		h.send(line)
		h.requireReply(want)
	}
	h.send("kexec")
	require.Equal(t, source.KindKexec, nextEvent(t, session).Kind, "the first event: no invalid line was one")
}

// An agent has died, and its socket has the mode 0777. Connect replaces it by a socket with the mode 0600.
func TestTheSocketReplacesThatOfADeadAgent(t *testing.T) {
	src, path := newSource(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	require.NoError(t, os.Chmod(path, 0o777))
	connect(t, src)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
}

// Close of a session removes the socket, leaves no other file in its folder, and closes the channel of events. A second Close
// does nothing.
func TestCloseRemovesTheSocket(t *testing.T) {
	session, path := newSession(t)
	require.NoError(t, session.Close())
	require.NoError(t, session.Close(), "a second Close")
	require.NoFileExists(t, path)
	_, open := <-session.Events()
	require.False(t, open)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is left beside the socket either")
}

// The path is that of a file, by mistake. Connect returns an error and does not touch the file.
func TestConnectDoesNotReplaceAFile(t *testing.T) {
	src, path := newSource(t)
	require.NoError(t, os.WriteFile(path, []byte("important"), 0o600))
	_, err := src.Connect(t.Context())
	require.EqualError(t, err, "failed to listen for the host on "+path+": it exists and is no socket, its mode is -rw-------")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "important", string(content))
}

// The folder of the socket does not exist. Connect returns an error, and logs nothing beside it.
func TestConnectNeedsTheFolder(t *testing.T) {
	src, err := unixsocket.New(unixsocket.Options{Path: "/nonexistent/shutdown.sock"})
	require.NoError(t, err)
	var lines bytes.Buffer
	_, err = src.Connect(klog.NewContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(&lines, nil))))
	require.ErrorContains(t, err, "/nonexistent/shutdown.sock")
	require.Empty(t, lines.String())
}

// A client waits for the reply when the session ends. The next session finds the shutdown pending, and the client gets its
// reply when the lock is closed.
func TestAWaitingClientOutlivesTheSession(t *testing.T) {
	src, path := newSource(t)
	session := connect(t, src)
	lock := takeLock(t, session)
	h := announceShutdown(t, path, "poweroff", session)
	require.NoError(t, session.Close())

	next := connect(t, src)
	pending, err := next.Pending(t.Context())
	require.NoError(t, err)
	require.Equal(t, source.KindPoweroff, pending.Kind)
	require.NoError(t, lock.Close())
	h.requireReply("released")
}

// Options.Delay says that clients wait 20 s: a request for 21 s gets 20 s and an error.
func TestRequestDelayIsCappedByTheOption(t *testing.T) {
	session, _ := newSession(t)
	granted, err := session.RequestDelay(t.Context(), 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, 20*time.Second, granted)
	granted, err = session.RequestDelay(t.Context(), 21*time.Second)
	require.ErrorAs(t, err, new(*source.DelayCappedError))
	require.Equal(t, 20*time.Second, granted)
}

// Without Options.Delay every delay is granted.
func TestRequestDelayWithoutTheOptionIsGranted(t *testing.T) {
	src, err := unixsocket.New(unixsocket.Options{Path: filepath.Join(t.TempDir(), "agent.sock")})
	require.NoError(t, err)
	granted, err := connect(t, src).RequestDelay(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Equal(t, time.Hour, granted)
}
