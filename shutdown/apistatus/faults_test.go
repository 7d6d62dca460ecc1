//go:build go1.25

package apistatus_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

// shortTimeout is the RequestTimeout for requests that hang.
const shortTimeout = 500 * time.Millisecond

// outcome is the result of FlushPod and the state of the API server afterwards.
type outcome struct {
	failed   bool // FlushPod returned an error
	written  bool // the pod has its final status
	removed  bool // the pod is gone
	requests int
}

// isTimeout reports whether err says that a request got no answer in time.
func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// FlushPod makes two requests, a patch and a delete, and one of them meets a fault of the network or of the API server. FlushPod fails
// with an error that names the fault, and makes no further request, except one that reads the pod after a conflict. The next call,
// without a fault, succeeds. (A slow answer is no fault.)
func TestAServerFaultFailsOneAttempt(t *testing.T) {
	asksToWait := func(err error) bool { // client-go would wait, and hide the answer
		seconds, ok := apierrors.SuggestsClientDelay(err)
		return ok && seconds == 60 && apierrors.IsTooManyRequests(err)
	}
	isNetworkError := func(err error) bool {
		var status apierrors.APIStatus
		return !isTimeout(err) && !errors.As(err, &status)
	}
	for name, test := range map[string]struct {
		fault apiserverproxy.Fault
		verb  string // the request with the fault
		want  outcome
		names func(error) bool // reports whether the error names the fault; nil: there is no error
	}{
		"slow":                {fault: apiserverproxy.Fault{Delay: shortTimeout / 4}, verb: "patch", want: outcome{removed: true, requests: 2}},
		"conflict":            {fault: apiserverproxy.Fault{Status: http.StatusConflict}, verb: "patch", want: outcome{failed: true, requests: 2}, names: apierrors.IsConflict},
		"rate limited":        {fault: apiserverproxy.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute}, verb: "patch", want: outcome{failed: true, requests: 1}, names: asksToWait},
		"dropped":             {fault: apiserverproxy.Fault{Drop: true}, verb: "patch", want: outcome{failed: true, requests: 1}, names: isNetworkError},
		"hanging":             {fault: apiserverproxy.Fault{Hang: true}, verb: "patch", want: outcome{failed: true, requests: 1}, names: isTimeout},
		"lost answer":         {fault: apiserverproxy.Fault{Lost: true}, verb: "patch", want: outcome{failed: true, written: true, requests: 1}, names: isNetworkError},
		"delete rate limited": {fault: apiserverproxy.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute}, verb: "delete", want: outcome{failed: true, written: true, requests: 2}, names: asksToWait},
		"delete, lost answer": {fault: apiserverproxy.Fault{Lost: true}, verb: "delete", want: outcome{failed: true, removed: true, requests: 2}, names: isNetworkError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := running("web")
			server, _ := serve(t, web)
			server.Script(apiserverproxy.Rules(apiserverproxy.Rule{Verb: test.verb, Times: 1, Fault: test.fault}))
			bound := time.Minute // only a request that hangs is bounded: others may be slow on a busy machine
			if test.fault.Hang {
				bound = shortTimeout
			}
			pod := deleted(ended(web))
			err := server.reporter(bound).FlushPod(t.Context(), pod)
			if test.names != nil {
				require.Error(t, err)
				require.True(t, test.names(err), "%v", err)
			}
			require.Equal(t, test.want, outcome{failed: err != nil, written: server.finalStatusCount() == 1, removed: len(server.pods()) == 0, requests: len(server.Requests())})
			require.NoError(t, server.reporter(time.Minute).FlushPod(t.Context(), pod), "the next attempt")
			require.Empty(t, server.pods(), "the pod is deleted")
		})
	}
}

// The first request of PublishNode, which reads the node, is refused, dropped, or not answered. PublishNode repeats it and
// returns no error, and the node has the conditions of a shutdown.
func TestPublishNodeRetriesAfterAFault(t *testing.T) {
	for name, fault := range map[string]apiserverproxy.Fault{
		"overloaded": {Status: http.StatusTooManyRequests}, "dropped": {Drop: true}, "hangs": {Hang: true},
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
