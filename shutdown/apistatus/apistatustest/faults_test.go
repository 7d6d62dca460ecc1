package apistatustest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown/apistatus/apistatustest"
)

const failed = `{"status":{"phase":"Failed"}}`

// always is a script.
func always(fault apistatustest.Fault) func(*http.Request) apistatustest.Fault {
	return func(*http.Request) apistatustest.Fault { return fault }
}

func TestRefusedRequestsChangeNothing(t *testing.T) {
	server := start(t, pod("web"))
	for code, is := range map[int]func(error) bool{
		http.StatusUnauthorized:        apierrors.IsUnauthorized,
		http.StatusForbidden:           apierrors.IsForbidden,
		http.StatusNotFound:            apierrors.IsNotFound,
		http.StatusConflict:            apierrors.IsConflict,
		http.StatusTooManyRequests:     apierrors.IsTooManyRequests,
		http.StatusInternalServerError: apierrors.IsInternalError,
		http.StatusServiceUnavailable:  apierrors.IsServiceUnavailable,
		http.StatusGatewayTimeout:      apierrors.IsTimeout,
	} {
		server.Script(always(apistatustest.Fault{Status: code}))
		_, err := patch(t, server, strategic, failed, "status")
		require.True(t, is(err), "%d: %v", code, err)
		asked := server.Requests()
		require.Equal(t, code, asked[len(asked)-1].Status)
	}
	require.Equal(t, v1.PodRunning, stored(t, server, "web").Status.Phase)

	server.Script(always(apistatustest.Fault{Status: http.StatusConflict}))
	_, err := clientFor(t, server).Pods("default").Create(t.Context(), pod("api"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)

	server.Script(nil)
	_, err = patch(t, server, strategic, failed, "status")
	require.NoError(t, err)
}

func TestRetryAfter(t *testing.T) {
	server := start(t, pod("web"))
	server.Script(always(apistatustest.Fault{Status: http.StatusTooManyRequests, RetryAfter: 1500 * time.Millisecond}))
	err := clientFor(t, server).RESTClient().Get().AbsPath("/api/v1/pods").MaxRetries(0).Do(t.Context()).Error()
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	seconds, said := apierrors.SuggestsClientDelay(err)
	require.True(t, said)
	require.Equal(t, 2, seconds, "whole seconds, rounded up")

	response, err := http.Get(server.URL() + "/api/v1/pods")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "2", response.Header.Get("Retry-After"))
}

func TestScriptReadsTheRequest(t *testing.T) {
	server := start(t, pod("web"), pod("api"))
	heard := make(chan string, 1)
	server.Script(func(r *http.Request) apistatustest.Fault {
		body, err := io.ReadAll(r.Body)
		heard <- r.URL.Path + " " + string(body)
		return apistatustest.Fault{Status: map[bool]int{true: http.StatusInternalServerError}[err != nil]}
	})
	_, err := patch(t, server, strategic, failed, "status")
	require.NoError(t, err, "what the script has read is carried out all the same")
	require.Equal(t, "/api/v1/namespaces/default/pods/web/status "+failed, <-heard)
	require.Equal(t, v1.PodFailed, stored(t, server, "web").Status.Phase)
}

func TestSlow(t *testing.T) {
	server := start(t, pod("web"))
	server.Slow(20 * time.Millisecond)
	_, err := patch(t, server, strategic, failed, "status")
	require.NoError(t, err)
	asked := server.Requests()[0]
	require.GreaterOrEqual(t, asked.Answered.Sub(asked.At), 20*time.Millisecond)
	server.Slow(0)
	_, err = patch(t, server, strategic, `{}`, "status")
	require.NoError(t, err)
}

// TestClientGivesUp leaves undone what was late or hung.
func TestClientGivesUp(t *testing.T) {
	given := errors.New("given up")
	for name, fault := range map[string]apistatustest.Fault{
		"delay": {Delay: time.Hour}, "hang": {Hang: true}, "both": {Hang: true, Delay: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, pod("web"))
			ctx, giveUp := context.WithCancelCause(t.Context())
			server.Script(func(*http.Request) apistatustest.Fault {
				giveUp(given)
				return fault
			})
			_, err := clientFor(t, server).Pods("default").Patch(ctx, "web", strategic, []byte(failed), metav1.PatchOptions{}, "status")
			require.ErrorIs(t, err, given)
			require.NoError(t, server.Close())
			require.Zero(t, server.Requests()[0].Status)
			require.Equal(t, v1.PodRunning, stored(t, server, "web").Status.Phase)
		})
	}
}

func TestDropAndLost(t *testing.T) {
	for name, test := range map[string]struct {
		fault apistatustest.Fault
		want  v1.PodPhase
	}{
		"dropped before it is carried out": {apistatustest.Fault{Drop: true}, v1.PodRunning},
		"lost after it was carried out":    {apistatustest.Fault{Lost: true}, v1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, pod("web"))
			server.Script(always(test.fault))
			_, err := patch(t, server, strategic, failed, "status")
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, test.want, stored(t, server, "web").Status.Phase)
			require.Len(t, server.Requests(), 1, "a PATCH is not sent twice")
			require.Zero(t, server.Requests()[0].Status)
			require.Zero(t, server.Requests()[0].Answered)
		})
	}
}
