//go:build go1.25

package apiserverproxy_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

// Of the rules that match a request, the first one that is not used up decides about its fault. If no rule matches, there is no
// fault. The rule for reads applies twice to each object (Times): the first two reads of web and of api get its 500, and the
// third one gets the 429 of the next rule.
func TestRules(t *testing.T) {
	const noFault = 0
	fault := func(status int) apiserverproxy.Fault { return apiserverproxy.Fault{Status: status} }
	script := apiserverproxy.Rules(
		apiserverproxy.Rule{Verb: "patch", Resource: "pods/status", Name: "web", Fault: fault(403)},
		apiserverproxy.Rule{Verb: "get", Times: 2, Fault: fault(500)},
		apiserverproxy.Rule{Resource: "nodes", Fault: fault(429)},
	)
	statusOf := func(verb, resource, name string) int {
		return script(apiserverproxy.Request{Verb: verb, Resource: resource, Name: name}).Status
	}
	require.Equal(t, 403, statusOf("patch", "pods/status", "web"))
	require.Equal(t, noFault, statusOf("patch", "pods/status", "api"))
	require.Equal(t, noFault, statusOf("patch", "pods", "web"))
	require.Equal(t, 429, statusOf("patch", "nodes", "web"))
	for _, name := range []string{"web", "api"} {
		require.Equal(t, 500, statusOf("get", "nodes", name))
		require.Equal(t, 500, statusOf("get", "nodes", name))
		require.Equal(t, 429, statusOf("get", "nodes", name))
	}
	withoutRules := apiserverproxy.Rules()
	require.Equal(t, apiserverproxy.Fault{}, withoutRules(apiserverproxy.Request{}))
}

// The limit is 10 requests per second. Of 100 requests at once 10 pass, and of 100 requests half a second later 5 pass.
// All other requests are rejected with the status 429 and a Retry-After.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const retryAfter = time.Minute
		script := apiserverproxy.Limit(10, retryAfter)
		passedOfHundred := func() (passed int) {
			for range 100 {
				fault := script(apiserverproxy.Request{})
				if fault == (apiserverproxy.Fault{}) {
					passed++
					continue
				}
				require.Equal(t, apiserverproxy.Fault{Status: http.StatusTooManyRequests, RetryAfter: retryAfter}, fault)
			}
			return passed
		}
		require.Equal(t, 10, passedOfHundred())
		<-time.After(500 * time.Millisecond)
		require.Equal(t, 5, passedOfHundred())
	})
}
