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

// Listen replaces a socket that a killed agent has left. It returns an error if an agent serves the socket, or if the
// path is a plain file.
func TestListenReplacesOnlyASocketThatNobodyServes(t *testing.T) {
	// An agent serves the socket.
	path, listener := serve(t)
	_, err := socket.Listen(path)
	require.EqualError(t, err, path+": another agent listens there")

	// The agent ends without the removal of its socket, as if it was killed.
	listener.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	_, err = os.Lstat(path)
	require.NoError(t, err, "the socket stays")
	next, err := socket.Listen(path)
	require.NoError(t, err)
	require.NoError(t, next.Close(), "this removes the socket")

	// A plain file is at the path.
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = socket.Listen(path)
	require.EqualError(t, err, path+": is there already, and is no socket")
}
