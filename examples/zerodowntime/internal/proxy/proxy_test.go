package proxy_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
)

// startProxy starts a proxy in front of one backend, or of none if the address is "". It
// returns the URL of the proxy.
func startProxy(t *testing.T, address string) string {
	t.Helper()
	table := proxy.NewTable(0)
	if address != "" {
		to := endpoint("pod", true, true, false)
		to.Address = address
		table.Publish([]proxy.Endpoint{to})
	}
	handler := proxy.New(table)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		handler.Close()
	})
	return server.URL
}

// post sends a request and returns the answer, whose body is closed.
func post(t *testing.T, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response
}

// startBackend starts a web server and returns its address.
func startBackend(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestProxyNamesThePodThatAnswers(t *testing.T) {
	response := post(t, startProxy(t, startBackend(t, func(http.ResponseWriter, *http.Request) {})))
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "pod", response.Header.Get(proxy.PodHeader))
	require.Empty(t, response.Header.Get(proxy.FailureHeader))
}

func TestProxyTellsRefusedFromCut(t *testing.T) {
	gone, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	var calls atomic.Int32
	breaking := startBackend(t, func(_ http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			return // the proxy keeps this connection for the next request
		}
		panic(http.ErrAbortHandler)
	})
	cutting := startProxy(t, breaking)
	require.Equal(t, http.StatusOK, post(t, cutting).StatusCode)
	for url, want := range map[string]string{startProxy(t, ""): proxy.Refused, startProxy(t, gone.Addr().String()): proxy.Refused, cutting: proxy.Cut} {
		response := post(t, url)
		require.GreaterOrEqual(t, response.StatusCode, 500)
		require.Equal(t, want, response.Header.Get(proxy.FailureHeader))
	}
	require.EqualValues(t, 2, calls.Load(), "a request that was cut is not sent again")
}

func TestProxyPassesWebsockets(t *testing.T) {
	url := startProxy(t, startBackend(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_ = conn.Close(websocket.StatusGoingAway, "") // the client checks the close status
	}))
	conn, response, err := websocket.Dial(t.Context(), strings.Replace(url, "http:", "ws:", 1), nil)
	require.NoError(t, err)
	require.Equal(t, "pod", response.Header.Get(proxy.PodHeader))
	_, _, err = conn.Read(t.Context())
	require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err))
}
