package socket_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
)

// serve serves HTTP on a new socket, in a folder that Listen has to create.
func serve(t *testing.T) (path string, listener net.Listener) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "folder", "s")
	listener, err := socket.Listen(path)
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() }) // a test may have closed its listener
	return path, listener
}

// The user that has made the socket can connect, whatever the host in the URL is. Only this user and root can use the
// socket (mode 0600), or reach it in its new folder (mode 0700).
func TestOnlyTheOwnerMayConnect(t *testing.T) {
	path, _ := serve(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://agent/", nil)
	require.NoError(t, err)
	response, err := socket.Client(path).Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, response.Body.Close())
	for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm())
	}
}

// Listen finds three things at its path, one after the other: a socket that is served, a socket that a killed agent has
// left, and a plain file. It must replace only the socket of the killed agent, and return an error for the others.
func TestListenReplacesOnlyASocketThatNobodyServes(t *testing.T) {
	path, listener := serve(t)
	_, err := socket.Listen(path)
	require.EqualError(t, err, path+": another agent listens there")

	listener.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	_, err = os.Lstat(path)
	require.NoError(t, err, "the socket stays, as after an agent that was killed")
	again, err := socket.Listen(path)
	require.NoError(t, err)
	require.NoError(t, again.Close())

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = socket.Listen(path)
	require.EqualError(t, err, path+": is there already, and is no socket")
}
