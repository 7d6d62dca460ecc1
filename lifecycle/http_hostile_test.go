//go:build go1.25

package lifecycle_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// secretHeaders returns headers of a hook that only its own server may get.
func secretHeaders() []v1.HTTPHeader {
	return []v1.HTTPHeader{
		{Name: "Authorization", Value: "Bearer s3cret"},
		{Name: "Cookie", Value: "session=s3cret"},
		{Name: "Proxy-Authorization", Value: "s3cret"},
		{Name: "X-Api-Key", Value: "s3cret"},
		{Name: "Referer", Value: "http://s3cret/"},
	}
}

// portOf returns the port of a test server.
func portOf(t *testing.T, server *httptest.Server) intstr.IntOrString {
	t.Helper()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	return intstr.FromInt(port)
}

// requestText returns all that a server can see of a request (its headers, host and URI) as one text.
func requestText(r *http.Request) string {
	var text strings.Builder
	_ = r.Header.Write(&text) // a strings.Builder takes all
	return text.String() + r.Host + r.RequestURI
}

// The hook's server redirects to another port, which may belong to another pod. The redirect is followed, but without the hook's
// headers and query. They stay away if the other port redirects back to the first.
func TestRedirectToAnotherPortDropsHeaders(t *testing.T) {
	var atOther, atFirst []string // the requests that arrive, except the hook's own
	var first *httptest.Server
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		atOther = append(atOther, requestText(r))
		http.Redirect(w, r, first.URL+"/end", http.StatusFound)
	}))
	defer other.Close()
	first = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begin" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		atFirst = append(atFirst, requestText(r))
	}))
	defer first.Close()
	_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{}, httpHandler(v1.HTTPGetAction{
		Host: "127.0.0.1", Port: portOf(t, first), Path: "/begin?key=s3cret", HTTPHeaders: secretHeaders(),
	}))
	require.NoError(t, err)
	require.Len(t, atOther, 1, "the redirect is followed, as in the kubelet")
	require.Len(t, atFirst, 1)
	for _, request := range []string{atOther[0], atFirst[0]} {
		require.NotContains(t, request, "s3cret")
		require.Contains(t, request, "kube-lifecycle/", "the User-Agent")
	}
}

// The hook's server redirects to itself. The second request has the hook's headers.
func TestRedirectToTheSamePortKeepsHeaders(t *testing.T) {
	var atEnd []string // the requests for /end
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begin" {
			http.Redirect(w, r, "/end", http.StatusFound)
			return
		}
		atEnd = append(atEnd, requestText(r))
	}))
	defer server.Close()
	_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{}, httpHandler(v1.HTTPGetAction{
		Host: "127.0.0.1", Port: portOf(t, server), Path: "/begin", HTTPHeaders: secretHeaders(),
	}))
	require.NoError(t, err)
	require.Len(t, atEnd, 1)
	require.Contains(t, atEnd[0], "Bearer s3cret")
}

// The hook's host is 127.0.0.1, and the server there redirects to localhost. That is another name, and so counts as another
// host: no request is sent to it, however the redirect's address is written.
func TestRedirectsToAnotherHostAreNotFollowed(t *testing.T) {
	var requests atomic.Int32 // to localhost
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer other.Close()
	hostAndPort := strings.Replace(strings.TrimPrefix(other.URL, "http://"), "127.0.0.1", "localhost", 1)
	for _, location := range []string{
		"http://" + hostAndPort,
		"//" + hostAndPort,                // without a scheme
		"http://127.0.0.1@" + hostAndPort, // 127.0.0.1 as the user
	} {
		first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		}))
		_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{}, httpHandler(v1.HTTPGetAction{
			Host: "127.0.0.1", Port: portOf(t, first), Path: "/", HTTPHeaders: secretHeaders(),
		}))
		require.NoError(t, err)
		first.Close()
	}
	require.Zero(t, requests.Load())
}

// runHookWithHeader runs an httpGet hook with one header, and returns the requests that have reached its server.
func runHookWithHeader(t *testing.T, header v1.HTTPHeader) (requests []*http.Request, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requests = append(requests, r) }))
	defer server.Close()
	_, err = runHook(t.Context(), lifecycle.HandlerRunnerOptions{}, httpHandler(v1.HTTPGetAction{
		Host: "127.0.0.1", Port: portOf(t, server), Path: "/", HTTPHeaders: []v1.HTTPHeader{header},
	}))
	return requests, err
}

// A Host header does not change where the request goes: it reaches the hook's own server, with this header.
func TestHostHeaderDoesNotChangeTheServer(t *testing.T) {
	requests, err := runHookWithHeader(t, v1.HTTPHeader{Name: "Host", Value: "evil.example"})
	require.NoError(t, err)
	require.Len(t, requests, 1)
	require.Equal(t, "evil.example", requests[0].Host)
}

// A hook with an invalid header, such as one with a line break, fails without a request. The error does not have the
// value of the header, which may be secret.
func TestInvalidHookHeadersAreRejected(t *testing.T) {
	for _, header := range []v1.HTTPHeader{
		{Name: "X-A", Value: "1\r\nX-B: s3cret"},
		{Name: "X-A", Value: "1\nX-B: s3cret"},
		{Name: "X-A: 1\r\nX-B", Value: "2"},
		{Name: "X-A", Value: "1\x00s3cret"},
		{Name: "Host", Value: "a\r\nX-B: s3cret"},
		{Name: "", Value: "s3cret"},
		{Name: "X A", Value: "s3cret"},
	} {
		requests, err := runHookWithHeader(t, header)
		require.Error(t, err, "%q", header)
		require.NotContains(t, err.Error(), "s3cret")
		require.Empty(t, requests)
	}
}

// A header that announces a body is accepted, but no body follows.
func TestHeadersThatAnnounceABodySendNone(t *testing.T) {
	for _, header := range []v1.HTTPHeader{{Name: "Content-Length", Value: "100"}, {Name: "Transfer-Encoding", Value: "chunked"}} {
		requests, err := runHookWithHeader(t, header)
		require.NoError(t, err)
		require.Len(t, requests, 1)
		require.Zero(t, requests[0].ContentLength, "a GET has no body, whatever its headers are")
	}
}
