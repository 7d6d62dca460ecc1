//go:build go1.25

package lifecycle

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle/internal/hookhttp"
)

// clientHook runs an httpGet hook with a client that uses the dial function.
func clientHook(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), scheme v1.URIScheme) error {
	runner := NewHandlerRunner(HandlerRunnerOptions{HTTP: hookhttp.NewClient(dial)})
	action := &v1.HTTPGetAction{Host: "pod.example", Port: intstr.FromInt32(80), Path: "/bye", Scheme: scheme}
	_, err := runner.Run(ctx, "", nil, nil, &v1.LifecycleHandler{HTTPGet: action})
	return err
}

// dialPipe returns a dial function that makes a pipe. The client gets one end of it, and serve the other.
func dialPipe(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}
}

// The server hangs, in each case at another step. The hook returns at its deadline, after 5 s, with the cause of its context.
// If only a part of the response's body is missing, the hook succeeds, because only the status counts. A bubble ends only when
// all its goroutines have ended, so these cases also prove that no goroutine or connection outlives the hook.
func TestHangingServerIsAbandonedAtTheDeadline(t *testing.T) {
	readsOnly := dialPipe(readAll)
	readsNothing := func(context.Context, string, string) (net.Conn, error) {
		client, _ := net.Pipe()
		return client, nil
	}
	noDial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	tests := map[string]struct {
		dial   func(context.Context, string, string) (net.Conn, error)
		scheme v1.URIScheme
		want   error
	}{
		"connection not accepted": {noDial, v1.URISchemeHTTP, CauseGraceSpent},
		"handshake not answered":  {readsOnly, v1.URISchemeHTTPS, CauseGraceSpent},
		"handshake not read":      {readsNothing, v1.URISchemeHTTPS, CauseGraceSpent},
		"request not answered":    {readsOnly, v1.URISchemeHTTP, CauseGraceSpent},
		"request not read":        {readsNothing, v1.URISchemeHTTP, CauseGraceSpent},
		"response not completed":  {dialPipe(answeringServer("HTTP/1.1 200", nil)), v1.URISchemeHTTP, CauseGraceSpent},
		"body not completed":      {dialPipe(answeringServer("HTTP/1.1 200 OK\r\n\r\nby", nil)), v1.URISchemeHTTP, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, CauseGraceSpent)
				defer cancel()
				began := time.Now()
				err := clientHook(ctx, tt.dial, tt.scheme)
				require.ErrorIs(t, err, tt.want)
				require.Equal(t, 5*time.Second, time.Since(began))
			})
		})
	}
}

// A failed hook closes only its own connections. Twenty hooks share a client whose connections take 2 s. Every
// second one has a deadline of 1 s and fails while it connects. The others, which are connecting too, succeed.
func TestFailedHookDoesNotDisturbOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, network, address string) (net.Conn, error) {
			select {
			case <-time.After(2 * time.Second):
				return dialPipe(answeringServer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", nil))(ctx, network, address)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		runner := NewHandlerRunner(HandlerRunnerOptions{HTTP: hookhttp.NewClient(slow)})
		run := func(ctx context.Context) error {
			action := &v1.HTTPGetAction{Host: "pod.example", Port: intstr.FromInt32(80)}
			_, err := runner.Run(ctx, "", nil, nil, &v1.LifecycleHandler{HTTPGet: action})
			return err
		}
		var hooks sync.WaitGroup
		for i := range 20 {
			hooks.Go(func() {
				if i%2 == 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					assert.ErrorIs(t, run(ctx), context.DeadlineExceeded)
				} else {
					assert.NoError(t, run(t.Context()))
				}
			})
		}
		hooks.Wait()
	})
}

// A hook asks the server to close the connection after the response. A connection that is kept alive would
// cost two goroutines and a file descriptor per pod.
func TestConnectionIsNotKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := make(chan *http.Request, 1)
		response := answeringServer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbye", requests)
		err := clientHook(t.Context(), dialPipe(response), v1.URISchemeHTTP)
		require.NoError(t, err)
		require.Equal(t, "close", (<-requests).Header.Get("Connection"))
	})
}

// answeringServer is a server that reads a request, sends it to requests if that is not full, writes
// a response, and waits until the client closes the connection.
func answeringServer(response string, requests chan<- *http.Request) func(net.Conn) {
	return func(c net.Conn) {
		defer readAll(c)
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return // the client has closed the connection
		}
		select {
		case requests <- req:
		default:
		}
		_, _ = c.Write([]byte(response)) // the client may have closed the connection
	}
}

// readAll reads until the client has closed its end.
func readAll(c net.Conn) {
	buffer := make([]byte, 4096)
	for {
		if _, err := c.Read(buffer); err != nil {
			_ = c.Close() // the other end is closed
			return
		}
	}
}

// A server redirects to itself for ever. The hook fails after ten requests.
func TestRedirectsAreFollowedTenTimesAtMost(t *testing.T) {
	var requests int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "/again", http.StatusFound)
	}))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	_, err = hookhttp.NewClient(nil).Do(req)
	require.ErrorContains(t, err, "stopped after 10 redirects")
	require.Equal(t, 10, requests)
}
