//go:build go1.25

package lifecycle_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// recordingDoer is an HTTPDoer that records the request and returns fixed values.
type recordingDoer struct {
	response *http.Response
	err      error
	requests []*http.Request
}

func (d *recordingDoer) Do(req *http.Request) (*http.Response, error) {
	d.requests = append(d.requests, req)
	return d.response, d.err
}

// httpHandler returns an httpGet hook.
func httpHandler(action v1.HTTPGetAction) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{HTTPGet: &action}
}

// An httpGet hook gets responses with different statuses. By default any status is a success, as for the kubelet. With
// FailOnHTTPStatus only 2xx is.
func TestHTTPHookStatus(t *testing.T) {
	handler := httpHandler(v1.HTTPGetAction{Path: "/bye", Port: intstr.FromInt32(80)})
	wantErrs := map[int]string{ // by status; "": none
		200: "", 204: "", 299: "",
		302: "unexpected HTTP status: 302 Found",
		404: "unexpected HTTP status: 404 Not Found",
		503: "unexpected HTTP status: 503 Service Unavailable",
	}
	for status, want := range wantErrs {
		doer := &recordingDoer{response: &http.Response{StatusCode: status, Body: http.NoBody}}
		_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer}, handler)
		require.NoError(t, err, "for the kubelet, any response is a success")

		msg, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer, FailOnHTTPStatus: true}, handler)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
		require.Equal(t, `HTTP lifecycle hook (/bye) for Container "server" in Pod "web_shop(42)" failed - error: `+want, msg)
	}
}

// countedBody is a body that counts the bytes read and the calls of Close, which fail.
type countedBody struct {
	io.Reader

	read   int
	closed int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *countedBody) Close() error {
	b.closed++
	return errors.New("failed to close the body")
}

// The body of the response is read to its end if it has up to 10 KiB, so that the server can send all of it. If its
// Content-Length is more, nothing of it is read. If its length is unknown, the first 10 KiB are read. Every body is closed
// once, and the error of closing it is ignored.
func TestHTTPHookReadsShortBodies(t *testing.T) {
	const most = 10 << 10
	tests := map[string]struct {
		length   int64 // the Content-Length; -1: unknown
		body     int   // how many bytes the body has
		wantRead int
	}{
		"short":              {length: 5, body: 5, wantRead: 5},
		"of 10 KiB":          {length: most, body: most, wantRead: most},
		"longer than 10 KiB": {length: most + 1, body: most + 1, wantRead: 0},
		"of unknown length":  {length: -1, body: 3 * most, wantRead: most},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			body := &countedBody{Reader: strings.NewReader(strings.Repeat("x", tt.body))}
			doer := &recordingDoer{response: &http.Response{StatusCode: http.StatusOK, ContentLength: tt.length, Body: body}}
			_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer}, httpHandler(v1.HTTPGetAction{Port: intstr.FromInt32(80)}))
			require.NoError(t, err)
			require.Equal(t, tt.wantRead, body.read)
			require.Equal(t, 1, body.closed)
		})
	}
}

// An HTTPDoer other than net/http may return a response without a body, or neither a response nor an error, as in the
// kubelet's tests. The hook succeeds.
func TestHTTPHookAcceptsAResponseWithoutBody(t *testing.T) {
	for _, response := range []*http.Response{nil, {StatusCode: http.StatusOK}} {
		doer := &recordingDoer{response: response}
		_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer, FailOnHTTPStatus: true}, httpHandler(v1.HTTPGetAction{Port: intstr.FromInt32(80)}))
		require.NoError(t, err)
	}
}
