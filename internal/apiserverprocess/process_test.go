package apiserverprocess

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readyStatus returns the HTTP status of a server's /readyz.
func readyStatus(ctx context.Context, t *testing.T, url string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Start returns a server that is ready. After the end of the test, connections to it are refused.
func TestAServerIsReadyAndEndsWithItsTest(t *testing.T) {
	needProgram(t)
	var url string
	t.Run("test", func(t *testing.T) {
		url = Start(t)
		code, err := readyStatus(t.Context(), t, url)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, code)
	})
	_, err := readyStatus(t.Context(), t, url) // the subtest has ended, and the server with it
	var refused *net.OpError
	require.ErrorAs(t, err, &refused)
}

// Three parallel tests get servers with three different URLs, so that they do not see each other's objects.
func TestParallelTestsHaveTheirOwnServers(t *testing.T) {
	needProgram(t)
	urls := make(chan string, 3)
	t.Run("tests", func(t *testing.T) {
		for range cap(urls) {
			t.Run("parallel", func(t *testing.T) {
				t.Parallel()
				urls <- Start(t)
			})
		}
	})
	close(urls)
	seen := map[string]bool{}
	for url := range urls {
		seen[url] = true
	}
	require.Len(t, seen, cap(urls))
}

// k8s.io/apiserver sends READY=1 to the socket in NOTIFY_SOCKET. This message must not reach the service manager of the
// test. So the server gets no NOTIFY_SOCKET, although the test has one.
func TestTheServiceManagerIsNotNotified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, socket.Close()) })
	t.Setenv("NOTIFY_SOCKET", path)
	Start(t)
	require.Equal(t, path, os.Getenv("NOTIFY_SOCKET"))
	require.NoError(t, socket.SetReadDeadline(time.Now()))
	_, err = socket.Read(make([]byte, 100))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "no message")
}

// A server is killed during a test. The stop at the end of the test must return an error, so that the test fails even
// if nothing else has noticed.
func TestStopReportsAKilledServer(t *testing.T) {
	needProgram(t)
	path, err := build(t.Context())
	require.NoError(t, err)
	p, err := start(path, t.TempDir())
	require.NoError(t, err)
	require.NoError(t, p.cmd.Process.Kill())
	require.EqualError(t, p.stop(), "signal: killed")
}

// The server gets a file in place of its data folder, so it exits. The error has the server's log, which says why. A program
// that cannot be run, here the same file, is another error.
func TestStartReportsAServerThatExits(t *testing.T) {
	needProgram(t)
	path, err := build(t.Context())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = start(path, file)
	require.ErrorContains(t, err, "the API server did not become ready")
	require.ErrorContains(t, err, "exit status 1")
	require.ErrorContains(t, err, "failed to start etcd", "the log of the server")
	_, err = start(file, t.TempDir())
	require.ErrorContains(t, err, "failed to start the API server")
}

// Without the go command in PATH there is nothing to build with, and the error says so.
func TestBuildReportsAFailure(t *testing.T) {
	t.Setenv(prebuiltVariable, "")
	t.Setenv("PATH", t.TempDir())
	_, err := build(t.Context())
	require.ErrorContains(t, err, "failed to build the test API server")
}

// KUBEGRACE_APISERVER has the path of a prebuilt program. build returns that path and builds nothing: PATH has no go command,
// with which it could.
func TestBuildReturnsThePrebuiltProgram(t *testing.T) {
	t.Setenv(prebuiltVariable, "/prebuilt/apiserver")
	t.Setenv("PATH", t.TempDir())
	path, err := build(t.Context())
	require.NoError(t, err, "nothing is built")
	require.Equal(t, "/prebuilt/apiserver", path)
}

// Tests run in the folders of many packages. The repository is found from each folder in it, and not from a folder
// outside.
func TestTheRepositoryIsFound(t *testing.T) {
	root, err := repository()
	require.NoError(t, err)
	for _, below := range []string{"", "examples", filepath.Join("internal", "apiserver"), filepath.Join("shutdown", "apistatus")} {
		found, ok := moduleAbove(filepath.Join(root, below))
		require.True(t, ok)
		require.Equal(t, root, found)
	}
	_, ok := moduleAbove(t.TempDir())
	require.False(t, ok)
}
