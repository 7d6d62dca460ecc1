//go:build go1.25

package lifecycle_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

const fallbackCounter = "kubelet_lifecycle_handler_http_fallbacks_total"

// httpActionFor returns an action for a test server with the given scheme.
func httpActionFor(t *testing.T, server *httptest.Server, scheme v1.URIScheme) v1.HTTPGetAction {
	t.Helper()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	require.NoError(t, err)
	return v1.HTTPGetAction{
		Path: "/bye", Host: address.Hostname(), Port: intstr.FromInt32(int32(port)), Scheme: scheme,
		HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: "secret"}, {Name: "X-Reason", Value: "drain"}},
	}
}

// An HTTPS hook reaches a server that speaks plain HTTP. The hook is sent again over HTTP, without credentials, and succeeds.
// The fallback is counted.
func TestHTTPSHookAnsweredInHTTPIsRetried(t *testing.T) {
	var received []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received = append(received, r.Header)
	}))
	defer server.Close()
	counters, count := countingMetrics(t)
	options := lifecycle.HandlerRunnerOptions{Metrics: counters}
	message, err := runHook(t.Context(), options, httpHandler(httpActionFor(t, server, v1.URISchemeHTTPS)))
	require.NoError(t, err)
	require.Empty(t, message)
	require.Len(t, received, 1)
	require.Equal(t, "drain", received[0].Get("X-Reason"))
	require.NotContains(t, received[0], "Authorization", "credentials are for TLS only")
	require.EqualValues(t, 1, count(fallbackCounter))
}

// The fallback of a hook from HTTPS to plain HTTP is an event of the pod, with the kubelet's text.
func TestFallbackIsAnEventOfThePod(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	events := &lifecycletest.Events{}
	_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{Events: events}, httpHandler(httpActionFor(t, server, v1.URISchemeHTTPS)))
	require.NoError(t, err)
	require.Len(t, events.All(), 1)
	event := events.All()[0]
	require.Equal(t, "web", event.Object.(*v1.Pod).Name)
	require.Equal(t, v1.EventTypeWarning, event.Type)
	require.Equal(t, "LifecycleHTTPFallback", event.Reason)
	require.Equal(t, "request to HTTPS lifecycle hook "+server.Listener.Addr().String()+" got HTTP response, retry with HTTP succeeded", event.Message)
}

// An HTTPS hook falls back to plain HTTP. Without a recorder, or with one but without a pod, there is no event of that, and the
// hook succeeds.
func TestFallbackNeedsNeitherRecorderNorPod(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	action := httpActionFor(t, server, v1.URISchemeHTTPS)
	events := &lifecycletest.Events{}
	for _, options := range []lifecycle.HandlerRunnerOptions{{Events: nil}, {Events: events}} {
		_, err := lifecycle.NewHandlerRunner(options).Run(t.Context(), containerID, nil, nil, httpHandler(action))
		require.NoError(t, err)
	}
	require.Empty(t, events.All(), "there is no pod to record it on")
}

// An HTTPS hook falls back to plain HTTP, and the answer is 404. With FailOnHTTPStatus the hook fails. The fallback is counted,
// because the server was reached.
func TestStatusOfTheFallbackRequestCounts(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	counters, count := countingMetrics(t)
	options := lifecycle.HandlerRunnerOptions{FailOnHTTPStatus: true, Metrics: counters}
	_, err := runHook(t.Context(), options, httpHandler(httpActionFor(t, server, v1.URISchemeHTTPS)))
	require.EqualError(t, err, "unexpected HTTP status: 404 Not Found")
	require.EqualValues(t, 1, count(fallbackCounter))
}

// A hook whose scheme fits the server is sent once, and keeps its Authorization header: without it the server answers 401, and
// FailOnHTTPStatus makes that an error.
func TestNoFallbackWhenTheSchemeMatches(t *testing.T) {
	requireAuthorization := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	plain := httptest.NewServer(requireAuthorization)
	defer plain.Close()
	encrypted := httptest.NewTLSServer(requireAuthorization)
	defer encrypted.Close()
	counters, count := countingMetrics(t)
	options := lifecycle.HandlerRunnerOptions{FailOnHTTPStatus: true, Metrics: counters}

	_, err := runHook(t.Context(), options, httpHandler(httpActionFor(t, plain, v1.URISchemeHTTP)))
	require.NoError(t, err)
	_, err = runHook(t.Context(), options, httpHandler(httpActionFor(t, encrypted, v1.URISchemeHTTPS)))
	require.NoError(t, err, "certificates are not verified")
	require.Zero(t, count(fallbackCounter))
}

// sequenceDoer returns one error after another; nil is a success.
type sequenceDoer struct {
	errs     []error
	requests []*http.Request
}

func (d *sequenceDoer) Do(req *http.Request) (*http.Response, error) {
	err := d.errs[len(d.requests)]
	d.requests = append(d.requests, req)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
}

// An HTTPS hook is sent again in plain HTTP, and the second request fails too. The hook returns the first error, and the
// fallback is neither counted nor recorded.
func TestFailedFallbackReturnsTheFirstError(t *testing.T) {
	firstErr := &url.Error{Op: "Get", URL: "https://127.0.0.1:80/", Err: errors.New("http: server gave HTTP response to HTTPS client")}
	doer := &sequenceDoer{errs: []error{firstErr, errors.New("refused")}}
	counters, count := countingMetrics(t)
	events := &lifecycletest.Events{}
	options := lifecycle.HandlerRunnerOptions{HTTP: doer, Events: events, Metrics: counters}
	_, err := runHook(t.Context(), options, httpHandler(v1.HTTPGetAction{Scheme: v1.URISchemeHTTPS, Port: intstr.FromInt32(80)}))
	require.Equal(t, error(firstErr), err)
	require.Len(t, doer.requests, 2, "one retry only")
	require.Equal(t, "https", doer.requests[0].URL.Scheme, "the first request is not changed")
	require.Equal(t, "http", doer.requests[1].URL.Scheme)
	require.Zero(t, count(fallbackCounter))
	require.Empty(t, events.All())
}

// A request is repeated in plain HTTP only after a *url.Error whose cause has the text of net/http. An error of another type, and
// a *url.Error that has the text only in its URL, are returned after a single request.
func TestOtherErrorsAreNotRetried(t *testing.T) {
	const text = "server gave HTTP response to HTTPS client"
	for _, err := range []error{errors.New(text), &url.Error{Op: "Get", URL: text, Err: errors.New("refused")}} {
		doer := &sequenceDoer{errs: []error{err, nil}}
		_, got := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer}, httpHandler(v1.HTTPGetAction{Port: intstr.FromInt32(80)}))
		require.Equal(t, err, got)
		require.Len(t, doer.requests, 1)
	}
}
