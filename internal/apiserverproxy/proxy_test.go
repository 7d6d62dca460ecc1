//go:build go1.25

package apiserverproxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

// startInFrontOf starts a proxy in front of a handler and returns a client for it.
func startInFrontOf(t *testing.T, handler http.HandlerFunc) (*apiserverproxy.Proxy, *http.Client) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	proxy := apiserverproxy.Start(t, server.URL)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return proxy, &http.Client{Transport: transport}
}

// patch sends a PATCH and returns the status of the response.
func patch(ctx context.Context, t *testing.T, client *http.Client, url string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, http.NoBody)
	require.NoError(t, err)
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Without a fault the server gets the client's method, URL and user agent, and the client gets the server's status, header
// and body, all unchanged.
func TestResponsesAreNotModified(t *testing.T) {
	proxy, client := startInFrontOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Warning", "299 - old")
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, r.UserAgent())
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL()+"/api/v1/pods?limit=5", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("User-Agent", "agent")
	response, err := client.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "GET /api/v1/pods?limit=5 agent", string(body))
	require.Equal(t, "299 - old", response.Header.Get("Warning"))
	require.Equal(t, http.StatusTeapot, proxy.Requests()[0].Status)
}

// A request is dropped before the server gets it, or the server's response is lost. In both cases the client gets no response: it
// sees a closed connection (an EOF).
func TestADroppedRequestOrALostResponseIsAnEOF(t *testing.T) {
	for name, test := range map[string]struct {
		fault    apiserverproxy.Fault
		received int32 // the server's requests
	}{
		"dropped": {fault: apiserverproxy.Fault{Drop: true}, received: 0},
		"lost":    {fault: apiserverproxy.Fault{Lost: true}, received: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var received atomic.Int32
			proxy, client := startInFrontOf(t, func(http.ResponseWriter, *http.Request) { received.Add(1) })
			proxy.Script(apiserverproxy.Always(test.fault))
			_, err := patch(t.Context(), t, client, proxy.URL())
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, test.received, received.Load())
		})
	}
}

// A request hangs. The client waits until its own timeout of 20 ms.
func TestAHangingRequestLastsUntilTheClientsTimeout(t *testing.T) {
	proxy, client := startInFrontOf(t, func(http.ResponseWriter, *http.Request) {})
	proxy.Script(apiserverproxy.Always(apiserverproxy.Fault{Hang: true}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := patch(ctx, t, client, proxy.URL())
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// The server behind the proxy is gone. The client sees a closed connection.
func TestAMissingServerIsAnEOF(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	proxy := apiserverproxy.Start(t, server.URL)
	server.Close() // not before the start of the proxy, which could get its port and forward requests to itself
	_, err := patch(t.Context(), t, http.DefaultClient, proxy.URL())
	require.ErrorIs(t, err, io.EOF)
}

// The script rejects each request with a status, such as 403. client-go returns the same kind of error as for an API server's
// rejection, such as one that IsForbidden recognizes.
func TestRejectionsAreAPIErrors(t *testing.T) {
	proxy, _ := startInFrontOf(t, func(http.ResponseWriter, *http.Request) {})
	client, err := kubernetes.NewForConfig(&rest.Config{Host: proxy.URL(), QPS: -1})
	require.NoError(t, err)
	for status, isOfStatus := range map[int]func(error) bool{
		http.StatusUnauthorized:        apierrors.IsUnauthorized,
		http.StatusForbidden:           apierrors.IsForbidden,
		http.StatusNotFound:            apierrors.IsNotFound,
		http.StatusConflict:            apierrors.IsConflict,
		http.StatusUnprocessableEntity: apierrors.IsInvalid,
		http.StatusInternalServerError: apierrors.IsInternalError,
		http.StatusServiceUnavailable:  apierrors.IsServiceUnavailable,
		http.StatusGatewayTimeout:      apierrors.IsTimeout,
	} {
		proxy.Script(apiserverproxy.Always(apiserverproxy.Fault{Status: status}))
		_, err := client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
		require.True(t, isOfStatus(err), "%d: %v", status, err)
	}
}

// The status 409 is a conflict, except as the answer to a create: there it means that the object exists already.
func TestARejectedCreateMeansThatTheObjectExists(t *testing.T) {
	proxy, _ := startInFrontOf(t, func(http.ResponseWriter, *http.Request) {})
	proxy.Script(apiserverproxy.Always(apiserverproxy.Fault{Status: http.StatusConflict}))
	client, err := kubernetes.NewForConfig(&rest.Config{Host: proxy.URL(), QPS: -1})
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("default").Create(t.Context(), &v1.Pod{}, metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
}

// The Retry-After header of a rejection has whole seconds, rounded up. Without a positive duration there is no header.
func TestRetryAfter(t *testing.T) {
	proxy, client := startInFrontOf(t, func(http.ResponseWriter, *http.Request) {})
	for after, want := range map[time.Duration]string{0: "", -time.Second: "", time.Millisecond: "1", 90 * time.Second: "90"} {
		proxy.Script(apiserverproxy.Always(apiserverproxy.Fault{Status: http.StatusTooManyRequests, RetryAfter: after}))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL(), http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.Header.Get("Retry-After"))
	}
}

// The script of a proxy kills the proxy during a request. The request gets no response, and later connections are
// refused. After Revive the proxy works at the same address.
func TestDieAndRevive(t *testing.T) {
	proxy, client := startInFrontOf(t, func(http.ResponseWriter, *http.Request) {})
	require.NoError(t, proxy.Revive(), "does nothing: the proxy is not dead")

	proxy.Script(func(apiserverproxy.Request) apiserverproxy.Fault {
		proxy.Die()
		return apiserverproxy.Fault{Hang: true}
	})
	_, err := patch(t.Context(), t, client, proxy.URL())
	require.Error(t, err)
	proxy.Die() // again
	_, err = patch(t.Context(), t, client, proxy.URL())
	var refused *net.OpError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "dial", refused.Op)

	proxy.Script(nil)
	require.NoError(t, proxy.Revive())
	code, err := patch(t.Context(), t, client, proxy.URL())
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.Len(t, proxy.Requests(), 2, "the one that killed the proxy, and the last")
}

// The server sends one line, and ends its response only after the client has read the line, as with a watch. The proxy must
// forward the line at once.
func TestWatchEventsAreForwardedImmediately(t *testing.T) {
	sent, seen := make(chan struct{}), make(chan struct{})
	proxy, client := startInFrontOf(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		close(sent)
		<-seen // the response ends when the handler returns
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL()+"/api/v1/pods?watch=1", http.NoBody)
	require.NoError(t, err)
	response, err := client.Do(r)
	require.NoError(t, err)
	<-sent
	line := make([]byte, len("first\n"))
	_, err = io.ReadFull(response.Body, line)
	require.NoError(t, err)
	close(seen)
	require.NoError(t, response.Body.Close())
}

// A proxy has ended with its test. Revive must return an error, and not listen again.
func TestReviveAfterTheTestIsAnError(t *testing.T) {
	var proxy *apiserverproxy.Proxy
	t.Run("test", func(t *testing.T) { proxy, _ = startInFrontOf(t, func(http.ResponseWriter, *http.Request) {}) })
	require.ErrorIs(t, proxy.Revive(), http.ErrServerClosed)
}

// 50 clients send requests while the proxy dies and is revived 20 times. Afterwards the proxy still works. With -race
// the test also finds unguarded fields.
func TestConcurrentUse(t *testing.T) {
	proxy, client := startInFrontOf(t, func(http.ResponseWriter, *http.Request) {})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 10 {
				_, _ = patch(t.Context(), t, client, proxy.URL()) // fails while the proxy is dead
			}
		})
	}
	for range 20 {
		proxy.Script(apiserverproxy.Always(apiserverproxy.Fault{Delay: time.Millisecond}))
		proxy.Die()
		if err := proxy.Revive(); err != nil {
			t.Error(err)
		}
		_ = proxy.Requests()
	}
	wg.Wait()
	_, err := patch(t.Context(), t, client, proxy.URL())
	require.NoError(t, err)
}
