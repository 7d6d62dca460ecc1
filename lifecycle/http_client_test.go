//go:build go1.25

package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
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

// dialPipe is a dial function that makes a pipe, and calls serve with the other end.
func dialPipe(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}
}

// Each server hangs at another step. The hook returns at its deadline after 5 s, with the cause of its
// context. A bubble ends only when all its goroutines have, so these cases also prove that no goroutine or
// connection outlives the hook.
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
	}{
		"connection not accepted": {noDial, v1.URISchemeHTTP},
		"handshake not answered":  {readsOnly, v1.URISchemeHTTPS},
		"handshake not read":      {readsNothing, v1.URISchemeHTTPS},
		"request not answered":    {readsOnly, v1.URISchemeHTTP},
		"request not read":        {readsNothing, v1.URISchemeHTTP},
		"response not completed":  {dialPipe(answeringServer("HTTP/1.1 200", nil)), v1.URISchemeHTTP},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, CauseGraceSpent)
				defer cancel()
				began := time.Now()
				err := clientHook(ctx, tt.dial, tt.scheme)
				require.ErrorIs(t, err, CauseGraceSpent)
				require.Equal(t, 5*time.Second, time.Since(began))
			})
		})
	}
}

// The server sends the headers of a response and two bytes of its body, and then hangs. The hook waits for the
// rest of the body until its deadline after 5 s. It succeeds, because only the status counts.
func TestHangingBodyIsAbandonedAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err := clientHook(ctx, dialPipe(answeringServer("HTTP/1.1 200 OK\r\n\r\nby", nil)), v1.URISchemeHTTP)
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// The server never answers, and the hook is cancelled after 1 s: it returns with the cause, and its
// connection is closed.
func TestHangingServerIsAbandonedWhenCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(CauseShortened) })
		closed := make(chan struct{})
		err := clientHook(ctx, dialPipe(func(c net.Conn) {
			readAll(c)
			close(closed)
		}), v1.URISchemeHTTP)
		require.ErrorIs(t, err, CauseShortened)
		<-closed
	})
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

// A redirect on the same host is followed, ten times at most. One to another host is not: it is the
// response.
func TestRedirects(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, "http://other.invalid/gone", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/twice":
			http.Redirect(w, r, "/end", http.StatusMovedPermanently)
		}
	}))
	defer server.Close()
	tests := map[string]struct {
		paths  []string
		status int
		err    string
	}{
		"/twice":     {paths: []string{"/twice", "/end"}, status: http.StatusOK},
		"/elsewhere": {paths: []string{"/elsewhere"}, status: http.StatusFound},
		"/loop":      {paths: strings.Fields(strings.Repeat("/loop ", 10)), err: "stopped after 10 redirects"},
	}
	for path, tt := range tests {
		t.Run(path, func(t *testing.T) {
			paths = nil
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
			require.NoError(t, err)
			resp, err := hookhttp.NewClient(nil).Do(req)
			require.Equal(t, tt.paths, paths)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.status, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
		})
	}
}

// A connection is refused. The hook's error wraps that error, and names the request as net/http does.
func TestErrorOfAClientNamesTheRequest(t *testing.T) {
	refused := errors.New("refused")
	err := clientHook(t.Context(), func(_ context.Context, network, address string) (net.Conn, error) {
		return nil, fmt.Errorf("dial %s %s: %w", network, address, refused)
	}, v1.URISchemeHTTP)
	require.ErrorIs(t, err, refused)
	require.EqualError(t, err, `Get "http://pod.example:80/bye": dial tcp pod.example:80: refused`)
}
