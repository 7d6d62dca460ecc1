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

// The server hangs, in each case at another step. The hook fails at its deadline, after 5 s, with the cause of its context. If
// only a part of the response's body is missing, it succeeds then, because only the status counts. A bubble ends only when all
// its goroutines have ended, so no goroutine or connection outlives the hook.
func TestHangingServerIsAbandonedAtTheDeadline(t *testing.T) {
	var (
		notAccepted = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		readsNothing = func(context.Context, string, string) (net.Conn, error) {
			client, _ := net.Pipe()
			return client, nil
		}
		readsOnly      = dialPipe(readAll)
		answersAPart   = dialPipe(answeringServer("HTTP/1.1 200"))
		bodyIsUnending = dialPipe(answeringServer("HTTP/1.1 200 OK\r\n\r\nby"))
	)
	for name, test := range map[string]struct {
		dial   func(context.Context, string, string) (net.Conn, error)
		scheme v1.URIScheme
		want   error
	}{
		"connection not accepted": {dial: notAccepted, scheme: v1.URISchemeHTTP, want: CauseGraceSpent},
		"handshake not answered":  {dial: readsOnly, scheme: v1.URISchemeHTTPS, want: CauseGraceSpent},
		"handshake not read":      {dial: readsNothing, scheme: v1.URISchemeHTTPS, want: CauseGraceSpent},
		"request not answered":    {dial: readsOnly, scheme: v1.URISchemeHTTP, want: CauseGraceSpent},
		"request not read":        {dial: readsNothing, scheme: v1.URISchemeHTTP, want: CauseGraceSpent},
		"response not completed":  {dial: answersAPart, scheme: v1.URISchemeHTTP, want: CauseGraceSpent},
		"body not completed":      {dial: bodyIsUnending, scheme: v1.URISchemeHTTP, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, CauseGraceSpent)
				defer cancel()
				began := time.Now()
				require.ErrorIs(t, clientHook(ctx, test.dial, test.scheme), test.want)
				require.Equal(t, 5*time.Second, time.Since(began))
			})
		})
	}
}

// Twenty hooks share a client whose connections take 2 s. Every second one has a deadline of 1 s, and fails while it connects.
// That must not close the connections of the others, which succeed.
func TestFailedHookDoesNotDisturbOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowDial := func(ctx context.Context, network, address string) (net.Conn, error) {
			select {
			case <-time.After(2 * time.Second):
				return dialPipe(answeringServer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))(ctx, network, address)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		runner := NewHandlerRunner(HandlerRunnerOptions{HTTP: hookhttp.NewClient(slowDial)})
		runHook := func(ctx context.Context) error {
			action := &v1.HTTPGetAction{Host: "pod.example", Port: intstr.FromInt32(80)}
			_, err := runner.Run(ctx, "", nil, nil, &v1.LifecycleHandler{HTTPGet: action}) // a hook with a host needs neither pod nor container
			return err
		}
		var hooks sync.WaitGroup
		for range 10 {
			hooks.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				assert.ErrorIs(t, runHook(ctx), context.DeadlineExceeded)
			})
			hooks.Go(func() { assert.NoError(t, runHook(t.Context())) })
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

// answeringServer is a server that reads a request, sends it to received, writes a response, and waits until the client closes
// the connection.
func answeringServer(response string, received ...chan<- *http.Request) func(net.Conn) {
	return func(c net.Conn) {
		defer readAll(c)
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return // the client has closed the connection
		}
		for _, requests := range received {
			requests <- req
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
	_, err = hookhttp.NewClient(nil).Do(req) // it dials as usual
	require.ErrorContains(t, err, "stopped after 10 redirects")
	require.Equal(t, 10, requests)
}
