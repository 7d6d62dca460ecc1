//go:build go1.25

package apiserverproxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

// podURL is the URL of a pod.
const podURL = "http://server/api/v1/namespaces/default/pods/web"

// backend is a server without sockets.
type backend struct {
	received []string // the method and the body of each request
}

// RoundTrip records a request and answers with 200.
func (b *backend) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	b.received = append(b.received, r.Method+" "+string(body))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
}

// send sends one request through a transport.
func send(ctx context.Context, t *testing.T, transport http.RoundTripper, method, url, body string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	return transport.RoundTrip(r)
}

// Each case has a fault, and what a client sees that waits for a minute: a status or an error. The transport records
// the request with this status, or without a status if the client sees an error.
func TestFaults(t *testing.T) {
	const timeout = time.Minute
	for name, test := range map[string]struct {
		fault      apiserverproxy.Fault
		status     int
		err        string
		isReceived bool          // the server gets the request
		after      time.Duration // when the client has the status or the error
	}{
		"no fault":                   {status: http.StatusOK, isReceived: true},
		"delayed":                    {fault: apiserverproxy.Fault{Delay: time.Second}, status: http.StatusOK, isReceived: true, after: time.Second},
		"delayed beyond the timeout": {fault: apiserverproxy.Fault{Delay: time.Hour}, err: "deadline exceeded", after: timeout},
		"negative delay":             {fault: apiserverproxy.Fault{Delay: -1}, status: http.StatusOK, isReceived: true},
		"rejected":                   {fault: apiserverproxy.Fault{Status: http.StatusForbidden}, status: http.StatusForbidden},
		"delayed, rejected":          {fault: apiserverproxy.Fault{Delay: time.Second, Status: http.StatusConflict}, status: http.StatusConflict, after: time.Second},
		"dropped":                    {fault: apiserverproxy.Fault{Drop: true}, err: "the connection was dropped"},
		"dropped and lost":           {fault: apiserverproxy.Fault{Drop: true, Lost: true}, err: "the connection was dropped"},
		"hanging":                    {fault: apiserverproxy.Fault{Hang: true, Status: http.StatusConflict}, err: "deadline exceeded", after: timeout},
		"lost":                       {fault: apiserverproxy.Fault{Lost: true}, err: "the response was lost", isReceived: true},
		"lost and hanging":           {fault: apiserverproxy.Fault{Lost: true, Hang: true}, err: "deadline exceeded", isReceived: true, after: timeout},
		"delayed, lost":              {fault: apiserverproxy.Fault{Lost: true, Delay: time.Second}, err: "the response was lost", isReceived: true, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &backend{}
				transport := apiserverproxy.NewTransport(server)
				transport.Script(apiserverproxy.Always(test.fault))
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				begin := time.Now()
				response, err := send(ctx, t, transport, http.MethodPatch, podURL, "{}")
				require.Equal(t, test.after, time.Since(begin))
				if test.err != "" {
					require.ErrorContains(t, err, test.err)
				} else {
					require.NoError(t, err)
					require.Equal(t, test.status, response.StatusCode)
				}
				require.Equal(t, test.isReceived, len(server.received) == 1)
				recorded := transport.Requests()
				require.Len(t, recorded, 1)
				require.Equal(t, test.status, recorded[0].Status)
				hasNoStatus := test.status == 0
				require.Equal(t, hasNoStatus, recorded[0].Answered.IsZero())
			})
		})
	}
}

// The server cannot be reached. The client gets the error of the connection, both without a fault and with the fault
// Lost.
func TestErrorsOfTheServerAreReturned(t *testing.T) {
	unreachable := errors.New("connection refused")
	transport := apiserverproxy.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) { return nil, unreachable }))
	for _, fault := range []apiserverproxy.Fault{{}, {Lost: true}} {
		transport.Script(apiserverproxy.Always(fault))
		_, err := send(t.Context(), t, transport, http.MethodGet, podURL, "")
		require.ErrorIs(t, err, unreachable)
	}
}

// roundTrip is a server that is one function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request whose body cannot be read is neither forwarded nor recorded.
func TestAnUnreadableBodyIsAnError(t *testing.T) {
	transport := apiserverproxy.NewTransport(&backend{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, podURL, unreadableBody{})
	require.NoError(t, err)
	_, err = transport.RoundTrip(r)
	require.ErrorContains(t, err, "failed to read the body: unexpected EOF")
	require.Empty(t, transport.Requests())
}

// unreadableBody is a body that cannot be read.
type unreadableBody struct{}

// Read fails as after a connection that was cut.
func (unreadableBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// The transport reads the body to record it, and the server must still get it.
func TestTheBodyIsForwardedAndRecorded(t *testing.T) {
	server := &backend{}
	transport := apiserverproxy.NewTransport(server)
	_, err := send(t.Context(), t, transport, http.MethodPut, podURL, "one body")
	require.NoError(t, err)
	require.Equal(t, []string{"PUT one body"}, server.received)
	require.Equal(t, "one body", string(transport.Requests()[0].Body))
}
