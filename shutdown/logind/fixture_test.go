//go:build linux

package logind_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// testTimeout is the longest that a test waits for anything. Only a test that fails waits so long.
const testTimeout = 10 * time.Second

// host is a scripted logind on a bus, and the options of sources that use it.
type host struct {
	bus     *logindhost.Bus
	login1  *logindfake.Login1
	root    string // the folder that stands for the host's root directory
	options logind.Options
	times   logind.Times
}

// newHost starts a bus with a scripted logind whose limit is 5 s. There is no systemd, so that logind cannot
// be reloaded until a test starts one.
func newHost(t testing.TB) *host {
	t.Helper()
	return newHostOn(t, logindhost.StartBus(t, logindhost.NewSocket))
}

// newSession returns a new host with a scripted logind, and a session of it that is closed when the test ends.
func newSession(t *testing.T) (*host, source.Session) {
	t.Helper()
	h := newHost(t)
	return h, h.connect(t)
}

// newHostOn starts a scripted logind, as newHost does, on a bus that the test has started.
func newHostOn(t testing.TB, bus *logindhost.Bus) *host {
	t.Helper()
	h := &host{root: t.TempDir(), bus: bus}
	h.login1 = logindfake.StartLogin1(t, h.bus.Address)
	h.options = logind.Options{
		Address:   h.bus.Address,
		HostRoot:  h.root,
		NoFDStore: true,
	}
	h.times = logind.Times{Reload: 200 * time.Millisecond, Poll: 10 * time.Millisecond} // short, so that no test waits long for nothing
	return h
}

// source returns a new source with the options of h.
func (h *host) source(t testing.TB) *logind.Source {
	t.Helper()
	source, err := logind.New(h.options.With(h.times))
	require.NoError(t, err)
	return source
}

// connect returns a session that is closed when the test ends.
func (h *host) connect(t *testing.T) source.Session {
	t.Helper()
	return connect(t, h.source(t))
}

// connect returns a session of a source. The session is closed when the test ends.
func connect(t testing.TB, source *logind.Source) source.Session {
	t.Helper()
	session, err := source.Connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	return session
}

// inhibit takes a lock, and also returns what logind knows of it.
func (h *host) inhibit(t *testing.T, session source.Session) (io.Closer, *logindfake.Lock) {
	t.Helper()
	lock, err := session.Inhibit(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Close()) })
	granted := h.login1.Locks()
	return lock, granted[len(granted)-1]
}

// announceShutdown makes logind announce a shutdown.
func (h *host) announceShutdown() { h.login1.Prepare(true) }

// cancelShutdown makes logind announce that the shutdown was cancelled.
func (h *host) cancelShutdown() { h.login1.Prepare(false) }

// beginShutdownSilently makes logind have a shutdown in progress, without a signal.
func (h *host) beginShutdownSilently() { h.login1.SetPreparing(true) }

// endShutdownSilently makes logind have no shutdown any more, without a signal, as CancelScheduledShutdown does from v257 on.
func (h *host) endShutdownSilently() { h.login1.SetPreparing(false) }

// nextEvent returns the next event. It fails if the session has ended.
func nextEvent(t *testing.T, session source.Session) source.Event {
	t.Helper()
	select {
	case event, open := <-session.Events():
		require.True(t, open, "the session has ended")
		return event
	case <-time.After(testTimeout):
		require.Fail(t, "no event")
		return source.Event{}
	}
}

// requireAnnounced requires that the next event announces a shutdown.
func requireAnnounced(t *testing.T, session source.Session) {
	t.Helper()
	require.False(t, nextEvent(t, session).Cancelled, "the event is a cancellation")
}

// requireCancelled requires that the next event cancels the shutdown.
func requireCancelled(t *testing.T, session source.Session) {
	t.Helper()
	require.True(t, nextEvent(t, session).Cancelled, "the event is no cancellation")
}

// awaitEnd waits until the session has ended, and fails if an event comes first.
func awaitEnd(t *testing.T, session source.Session) {
	t.Helper()
	select {
	case event, open := <-session.Events():
		require.False(t, open, "an event instead of the end: %+v", event)
	case <-time.After(testTimeout):
		require.Fail(t, "the session has not ended")
	}
}

// awaitReleased waits until the last copy of a lock is closed.
func awaitReleased(t *testing.T, lock *logindfake.Lock) {
	t.Helper()
	select {
	case <-lock.Released:
	case <-time.After(testTimeout):
		require.Fail(t, "the lock is still held")
	}
}

// requireHeld checks that a copy of the lock is still open, so that logind would delay a shutdown.
func requireHeld(t *testing.T, lock *logindfake.Lock) {
	t.Helper()
	select {
	case <-lock.Released:
		require.Fail(t, "the lock was released")
	default:
	}
}
