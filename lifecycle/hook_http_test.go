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

// An httpGet hook succeeds with any status of the response, as in the kubelet. With FailOnHTTPStatus it fails unless the status
// is 2xx.
func TestHTTPHookStatus(t *testing.T) {
	handler := httpHandler(v1.HTTPGetAction{Path: "/bye", Port: intstr.FromInt32(80)})
	const succeeds = ""
	for status, want := range map[int]string{ // the error with FailOnHTTPStatus
		200: succeeds, 204: succeeds, 299: succeeds,
		302: "unexpected HTTP status: 302 Found",
		404: "unexpected HTTP status: 404 Not Found",
		503: "unexpected HTTP status: 503 Service Unavailable",
	} {
		doer := &recordingDoer{response: &http.Response{StatusCode: status, Body: http.NoBody}}
		_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer}, handler)
		require.NoError(t, err, "without FailOnHTTPStatus")

		message, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer, FailOnHTTPStatus: true}, handler)
		if want == succeeds {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
		require.Equal(t, `HTTP lifecycle hook (/bye) for Container "server" in Pod "web_shop(42)" failed - error: `+want, message)
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

// The hook reads up to 10 KiB of the response's body, so that the server can send all of a short one. It reads nothing if the
// Content-Length is more. It closes each body once, and ignores the error of Close.
func TestHTTPHookReadsShortBodies(t *testing.T) {
	const (
		limit   = 10 << 10
		unknown = -1
	)
	for name, test := range map[string]struct {
		contentLength int64
		body          int // how many bytes the body has
		wantRead      int // how many of them are read
	}{
		"short":              {contentLength: 5, body: 5, wantRead: 5},
		"of 10 KiB":          {contentLength: limit, body: limit, wantRead: limit},
		"longer than 10 KiB": {contentLength: limit + 1, body: limit + 1, wantRead: 0},
		"of unknown length":  {contentLength: unknown, body: 3 * limit, wantRead: limit},
	} {
		t.Run(name, func(t *testing.T) {
			body := &countedBody{Reader: strings.NewReader(strings.Repeat("x", test.body))}
			response := &http.Response{StatusCode: http.StatusOK, ContentLength: test.contentLength, Body: body}
			options := lifecycle.HandlerRunnerOptions{HTTP: &recordingDoer{response: response}}
			_, err := runHook(t.Context(), options, httpHandler(v1.HTTPGetAction{Port: intstr.FromInt32(80)}))
			require.NoError(t, err)
			require.Equal(t, test.wantRead, body.read)
			require.Equal(t, 1, body.closed)
		})
	}
}

// An HTTPDoer returns a response without a body, or neither a response nor an error, as in the kubelet's tests. net/http does
// neither. The hook succeeds.
func TestHTTPHookAcceptsAResponseWithoutBody(t *testing.T) {
	for _, response := range []*http.Response{nil, {StatusCode: http.StatusOK}} {
		options := lifecycle.HandlerRunnerOptions{HTTP: &recordingDoer{response: response}, FailOnHTTPStatus: true}
		_, err := runHook(t.Context(), options, httpHandler(v1.HTTPGetAction{Port: intstr.FromInt32(80)}))
		require.NoError(t, err)
	}
}
