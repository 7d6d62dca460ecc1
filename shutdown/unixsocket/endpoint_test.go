package unixsocket_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
	"github.com/kubegrace/kubegrace/shutdown/unixsocket"
)

// requireReaches requires that a new client can announce a shutdown to the session and cancel it. The session must have no
// lock: then the client gets the reply "released" at once.
func requireReaches(t *testing.T, path string, session source.Session) {
	t.Helper()
	h := dial(t, path)
	h.send("kexec")
	require.Equal(t, source.KindKexec, nextEvent(t, session).Kind)
	h.requireReply("released")
	h.send("cancel")
	requireCancelled(t, session)
	h.requireReply("cancelled")
}

// awaitListener waits until an agent accepts connections at path.
func awaitListener(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		probe, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
		return err == nil && probe.Close() == nil
	}, testTimeout, time.Millisecond)
}

// In an update, the new agent listens at the path before the previous agent ends, and so replaces its socket. When the
// previous agent closes its session, the new socket must stay.
func TestCloseKeepsALaterAgentsSocket(t *testing.T) {
	previous, path := newSource(t)
	ending := connect(t, previous)
	src, err := unixsocket.New(unixsocket.Options{Path: path})
	require.NoError(t, err)
	session := connect(t, src)
	require.NoError(t, ending.Close())
	requireReaches(t, path, session)
}

// The file of the socket is removed or replaced. The agent listens on a new socket at the same path, in the same session, so
// that an init script can announce a shutdown.
func TestARemovedSocketIsRecreated(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"replaced by a file": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		},
		"replaced by a dead one": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			dead, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
			require.NoError(t, err)
			dead.SetUnlinkOnClose(false)
			require.NoError(t, dead.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			session, path := newSession(t)
			harm(t, path)
			awaitListener(t, path)
			requireReaches(t, path, session)
		})
	}
}

// The socket's folder is removed, so that the agent cannot make the socket again. The session ends, and the next Connect
// returns the error.
func TestAFailedRecreationEndsTheSession(t *testing.T) {
	src, path := newSource(t)
	session := connect(t, src)
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	select {
	case _, open := <-session.Events():
		require.False(t, open)
	case <-time.After(testTimeout):
		t.Fatal("the session has not ended")
	}
	require.NoError(t, session.Close())
	_, err := src.Connect(t.Context())
	require.ErrorContains(t, err, path)
}

// Two agents use the same path. The later one has the socket, and the first one does not take the socket back
// until the later one ends.
func TestTheLaterAgentHasTheSocket(t *testing.T) {
	first, path := newSource(t)
	session := connect(t, first)
	second, err := unixsocket.New(unixsocket.Options{Path: path})
	require.NoError(t, err)
	later := connect(t, second)

	laterSocket, err := os.Lstat(path)
	require.NoError(t, err)
	<-time.After(3 * unixsocket.CheckInterval) // the first agent has checked its socket, and could have taken it back
	socket, err := os.Lstat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(laterSocket, socket), "the agents do not fight for the socket")
	requireReaches(t, path, later)

	require.NoError(t, later.Close())
	awaitListener(t, path)
	requireReaches(t, path, session)
}

// Agents that were killed while they made their sockets have left a socket (.1) and a folder with a socket (.2), both an hour old.
// Connect removes them. It keeps what may be in use: a new socket, named after this process, and the new folder .3. It also keeps
// the old files .4, .old and ".", which are plain files, and so are not an agent's.
func TestLeftoversOfADeadAgentAreRemoved(t *testing.T) {
	src, path := newSource(t)
	longAgo := time.Now().Add(-time.Hour)
	leaveSocket := func(name string, modified time.Time) {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: name})
		require.NoError(t, err)
		listener.SetUnlinkOnClose(false)
		require.NoError(t, listener.Close())
		require.NoError(t, os.Chtimes(name, modified, modified))
	}
	// What is removed.
	leaveSocket(path+".1", longAgo)
	require.NoError(t, os.Mkdir(path+".2", 0o700))
	leaveSocket(filepath.Join(path+".2", "s"), longAgo)
	require.NoError(t, os.Chtimes(path+".2", longAgo, longAgo))
	// What is kept.
	leaveSocket(path+"."+strconv.Itoa(os.Getpid()), time.Now())
	require.NoError(t, os.Mkdir(path+".3", 0o700))
	for _, name := range []string{path + ".4", path + ".old", path + "."} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		require.NoError(t, os.Chtimes(name, longAgo, longAgo))
	}

	connect(t, src)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name()[len(filepath.Base(path)):]) // the socket itself becomes ""
	}
	require.ElementsMatch(t, []string{"", "." + strconv.Itoa(os.Getpid()), ".3", ".4", ".old", "."}, names)
}
