package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// serveHandler serves a handler as the agent serves its port, with the same limits, and returns its address.
func serveHandler(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a := &Agent{missingParts: newMissingList(klog.Logger{})}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		a.serveUntil(ctx, "port", func() (net.Listener, error) { return listener, nil }, &http.Server{Handler: handler})
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	return listener.Addr().String()
}

// send sends a text on a new connection, and returns the answer.
func send(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, _ = io.WriteString(conn, text) // fails if the server has closed the connection
	answer, _ := io.ReadAll(conn)     // fails for the same reason
	require.NoError(t, conn.Close())
	return string(answer)
}

// Any user of the machine can open connections and send nothing. 300 idle connections are open. A request must be
// answered all the same, and the server must keep no more than maxConnections of the connections.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	address := serveHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	before := descriptors(t)
	for range 300 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }() // the server may have closed it already
	}
	require.Eventually(t, func() bool {
		return strings.Contains(send(t, address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), " 200 OK")
	}, 10*time.Second, 10*time.Millisecond)
	require.Less(t, descriptors(t)-before, 300+maxConnections+20, "300 descriptors are this test's ends of the connections; 20 are a margin")
}

// A client sends a thousand requests on one connection at once. The server must answer only the first and
// close the connection, so that a client cannot queue much work.
func TestOneAnswerPerConnection(t *testing.T) {
	var answers atomic.Int64
	address := serveHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answers.Add(1) }))
	send(t, address, strings.Repeat("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000))
	require.EqualValues(t, 1, answers.Load())
}

// descriptors returns how many file descriptors this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no /proc")
	}
	require.NoError(t, err)
	return len(open)
}

// A request has a header of 64 KiB, and the server reads at most 8 KiB. It refuses the request. The client may see a closed
// connection instead of the answer.
func TestALargeHeaderIsRefused(t *testing.T) {
	address := serveHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if answer := send(t, address, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n"); answer != "" {
		require.Contains(t, answer, "431")
	}
}

// A pod is killed twice, because the second kill shortens the first. Only one beginning and one end of its stop are
// shown: those for which begin and end return true.
func TestAStopIsShownOnce(t *testing.T) {
	k, pod := killer{stopping: map[types.UID]stop{}}, &v1.Pod{}
	require.True(t, k.begin(pod))
	require.False(t, k.begin(pod))
	_, isShown := k.end(pod)
	require.True(t, isShown)
	_, isShown = k.end(pod)
	require.False(t, isShown)
}
