//go:build go1.25

package apistatus_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

// shortTimeout is the RequestTimeout for requests that hang.
const shortTimeout = 500 * time.Millisecond

// outcome is the result of FlushPod and the server's state afterwards.
type outcome struct {
	failed   bool // FlushPod returned an error
	written  bool // the pod has its final status
	removed  bool // the pod is gone
	requests int
}

// isTimeout reports whether err says that a request got no answer in time.
func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// isStatus returns a function that reports whether an error has the API server's answer with this code.
func isStatus(code int32) func(error) bool {
	return func(err error) bool {
		var status apierrors.APIStatus
		return errors.As(err, &status) && status.Status().Code == code
	}
}

// One request of FlushPod meets a fault. The attempt fails with an error that names the fault, and makes no further
// request except to tell what a conflict means. The next attempt, without a fault, succeeds.
func TestAServerFaultFailsOneAttempt(t *testing.T) {
	delays := func(seconds int) func(error) bool {
		return func(err error) bool {
			got, ok := apierrors.SuggestsClientDelay(err)
			return ok && got == seconds && isStatus(http.StatusTooManyRequests)(err)
		}
	}
	network := func(err error) bool { return !isTimeout(err) && !isStatus(0)(err) }
	// An outcome is: failed, written, removed, and the number of requests. If all is well that is a patch and a delete.
	for name, test := range map[string]struct {
		fault apiserverproxy.Fault
		verb  string // the request with the fault
		want  outcome
		is    func(error) bool // reports whether the error names the fault; nil: there is no error
	}{
		"slow":                   {apiserverproxy.Fault{Delay: shortTimeout / 4}, "patch", outcome{false, false, true, 2}, nil},
		"too slow":               {apiserverproxy.Fault{Delay: time.Minute}, "patch", outcome{true, false, false, 1}, isTimeout},
		"conflict":               {apiserverproxy.Fault{Status: http.StatusConflict}, "patch", outcome{true, false, false, 2}, apierrors.IsConflict},
		"forbidden":              {apiserverproxy.Fault{Status: http.StatusForbidden}, "patch", outcome{true, false, false, 1}, apierrors.IsForbidden},
		"rate limited":           {apiserverproxy.Fault{Status: http.StatusTooManyRequests}, "patch", outcome{true, false, false, 1}, isStatus(http.StatusTooManyRequests)},
		"rate limited for 1 min": {apiserverproxy.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute}, "patch", outcome{true, false, false, 1}, delays(60)},
		"internal error":         {apiserverproxy.Fault{Status: http.StatusInternalServerError}, "patch", outcome{true, false, false, 1}, apierrors.IsInternalError},
		"internal error for 1 s": {apiserverproxy.Fault{Status: http.StatusInternalServerError, RetryAfter: time.Second}, "patch", outcome{true, false, false, 1}, apierrors.IsInternalError},
		"unavailable":            {apiserverproxy.Fault{Status: http.StatusServiceUnavailable}, "patch", outcome{true, false, false, 1}, apierrors.IsServiceUnavailable},
		"dropped":                {apiserverproxy.Fault{Drop: true}, "patch", outcome{true, false, false, 1}, network},
		"hanging":                {apiserverproxy.Fault{Hang: true}, "patch", outcome{true, false, false, 1}, isTimeout},
		"lost answer":            {apiserverproxy.Fault{Lost: true}, "patch", outcome{true, true, false, 1}, network},
		"hanging answer":         {apiserverproxy.Fault{Lost: true, Hang: true}, "patch", outcome{true, true, false, 1}, isTimeout},
		"delete conflict":        {apiserverproxy.Fault{Status: http.StatusConflict}, "delete", outcome{true, true, false, 3}, apierrors.IsConflict},
		"delete rate limited":    {apiserverproxy.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute}, "delete", outcome{true, true, false, 2}, delays(60)},
		"delete hanging":         {apiserverproxy.Fault{Hang: true}, "delete", outcome{true, true, false, 2}, isTimeout},
		"delete, lost answer":    {apiserverproxy.Fault{Lost: true}, "delete", outcome{true, false, true, 2}, network},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := running("web")
			server, _ := serve(t, web)
			server.Script(apiserverproxy.Rules(apiserverproxy.Rule{Verb: test.verb, Times: 1, Fault: test.fault}))
			// Only a request that hangs is bounded: others may be slow on a busy machine.
			bound := time.Minute
			if test.fault.Hang || test.fault.Delay > bound/2 {
				bound = shortTimeout
			}
			r := server.reporter(bound)
			pod := deleted(ended(web))
			err := r.FlushPod(t.Context(), pod)
			if test.is != nil {
				require.Error(t, err)
				require.True(t, test.is(err), "%v", err)
			}
			require.Equal(t, test.want, outcome{err != nil, server.terminated() == 1, len(server.pods()) == 0, len(server.Requests())})
			r = server.reporter(time.Minute)
			require.NoError(t, r.FlushPod(t.Context(), pod), "the next attempt")
			require.Empty(t, server.pods())
		})
	}
}

// The API server refuses connections, or never answers. Each call ends with a short error and one request, so
// that the drain can repeat it.
func TestRequestsToADeadServerFailInTime(t *testing.T) {
	_, pods := podsAndFinalStatuses(20)
	for name, test := range map[string]struct {
		kill    func(*apiserverproxy.Proxy)
		arrived int // requests that reach the proxy
	}{
		"refuses": {kill: (*apiserverproxy.Proxy).Die},
		"hangs": {arrived: len(pods), kill: func(proxy *apiserverproxy.Proxy) {
			proxy.Script(apiserverproxy.Always(apiserverproxy.Fault{Hang: true}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := serve(t)
			test.kill(server.Proxy)
			r := server.reporter(shortTimeout)
			for _, err := range tenAtATime(t, pods, r.FlushPod) {
				require.Error(t, err)
				require.Less(t, len(err.Error()), 300, "%v", err)
			}
			require.Len(t, server.Requests(), test.arrived, "one request for each pod")
			ctx, cancel := context.WithTimeout(t.Context(), shortTimeout)
			defer cancel()
			require.ErrorIs(t, r.PublishNode(ctx, reboot), context.DeadlineExceeded)
			require.Error(t, r.MarkNotReady(t.Context(), running("web")))
			require.Error(t, r.RestoreReadiness(t.Context(), running("web")))
		})
	}
}

// The API server dies after ten of 20 final statuses and comes back. Repeated calls then succeed for all,
// also for the ten that were written before.
func TestFlushPodSucceedsWhenTheServerIsBack(t *testing.T) {
	server, r, pods := serveWithPods(t, 20)
	for _, err := range tenAtATime(t, pods[:10], r.FlushPod) {
		require.NoError(t, err)
	}
	server.Die()
	for _, err := range tenAtATime(t, pods, r.FlushPod) {
		require.Error(t, err)
	}
	require.NoError(t, server.Revive())
	for _, err := range tenAtATime(t, pods, r.FlushPod) {
		require.NoError(t, err)
	}
	require.Equal(t, 20, server.terminated())
}

// FlushPod waits for an API server that does not answer. It must return as soon as its context is cancelled.
func TestCancellingTheContextEndsFlushPod(t *testing.T) {
	server, _, pods := serveWithPods(t, 1)
	server.Script(apiserverproxy.Always(apiserverproxy.Fault{Hang: true}))
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	r := server.reporter(time.Minute)
	go func() { result <- r.FlushPod(ctx, pods[0]) }()
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	require.Equal(t, v1.PodRunning, server.pod("web-000").Status.Phase)
}

// The first request of each kind meets a fault. PublishNode repeats what failed, so its caller sees no error.
func TestPublishNodeRetriesAfterAFault(t *testing.T) {
	for name, fault := range map[string]apiserverproxy.Fault{
		"conflict":     {Status: http.StatusConflict},
		"overloaded":   {Status: http.StatusTooManyRequests},
		"broken":       {Status: http.StatusInternalServerError},
		"dropped":      {Drop: true},
		"lost answers": {Lost: true},
		"hangs":        {Hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := serve(t, nodeOf(ready))
			server.Script(apiserverproxy.Rules(apiserverproxy.Rule{Times: 1, Fault: fault}))
			require.NoError(t, server.reporter(shortTimeout).PublishNode(t.Context(), reboot))
			require.Equal(t, []conditionText{notReady, rebooting}, conditionTexts(server.node().Status.Conditions))
		})
	}
}
