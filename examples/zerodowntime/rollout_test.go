package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// manyServers is more than any test starts.
const manyServers = 1000

// A rolling update loses requests without a preStop sleep: pods refuse requests until the load balancer knows that they
// are gone. A sleep that is longer than the load balancer's delay avoids the loss. It does not if the grace period cuts
// the sleep off, or if the requests pass a proxy in the pod that gets SIGTERM at once.
func TestLostRequests(t *testing.T) {
	const delay = 1500 * time.Millisecond
	for _, test := range []struct {
		scenario    scenario
		delay       time.Duration
		least, most int           // how many requests are lost, at least and at most
		longestStop time.Duration // the longest stop of a pod; answering the last requests may take 0.2 s more
	}{
		// Each of the 3 old pods gets its share of 50 requests a second, a third or a quarter, and refuses it
		// for 1.5 s: 3 * 1.5 s * 50/s / 3 = 75 or, with four known pods, 56. Old pods end one after the other,
		// so it may be less.
		{scenario: scenario{}, delay: delay, least: 45, most: 75, longestStop: 0},
		{scenario: scenario{sleep: 5}, delay: delay, least: 0, most: 0, longestStop: 5 * time.Second},
		{scenario: scenario{sleep: 5}, delay: 8 * time.Second, least: 45, most: 150, longestStop: 5 * time.Second}, // the sleep is 3 s too short: at most 3 * 3 s * 50/s / 3
		{scenario: scenario{sleep: 5, grace: 1}, delay: delay, least: 10, most: 25, longestStop: time.Second},      // cut to 1 s, it is 0.5 s too short
		{scenario: scenario{sleep: 5, proxy: proxyAsMain}, delay: delay, least: 45, most: 75, longestStop: 5 * time.Second},
		{scenario: scenario{sleep: 5, proxy: proxyAsSidecar}, delay: delay, least: 0, most: 0, longestStop: 5 * time.Second},
	} {
		t.Run(test.scenario.String()+", late "+test.delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := measure(t.Context(), pipeNetwork(manyServers), test.delay, test.scenario)
				require.NoError(t, err)
				require.Equal(t, test.scenario, r.scenario)
				require.Greater(t, r.sent, 250)
				require.GreaterOrEqual(t, r.lost, test.least)
				require.LessOrEqual(t, r.lost, test.most)
				require.InDelta(t, test.longestStop.Seconds(), r.longestStop.Seconds(), 0.2)
			})
		})
	}
}

// The context of a rolling update ends, in each case at another time. The call must return within a second, with the
// cause of the context. The load balancer needs 1.5 s to know the pods, the rolling update begins 1 s later, and its
// last pod sleeps from 5.5 s to 10.5 s. No goroutine may be left running: the synctest bubble would fail the test.
func TestARollingUpdateEndsWithItsContext(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"before the requests":        time.Second,
		"before the rolling update":  2 * time.Second,
		"during the rolling update":  4500 * time.Millisecond,
		"while the last pod sleeps":  8 * time.Second,
		"after the rolling update":   11 * time.Second,
		"before anything is started": 0,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reason := errors.New("interrupted")
				ctx, cancel := context.WithTimeoutCause(t.Context(), after, reason)
				defer cancel()
				start := time.Now()
				_, err := measure(ctx, pipeNetwork(manyServers), 1500*time.Millisecond, scenario{sleep: 5, proxy: proxyAsSidecar})
				require.ErrorIs(t, err, reason)
				require.Less(t, time.Since(start), after+time.Second)
			})
		})
	}
}

// A container cannot be started, because the network allows only a limited number of servers. The rolling update ends
// with an error that names the container. With 3 servers, which are the balancer and two old pods, the third old pod
// fails. With 5 it is the second new pod.
func TestAContainerThatDoesNotStartEndsTheRollingUpdate(t *testing.T) {
	for maxServers, name := range map[int]string{0: "balancer", 3: "old-3/web", 5: "new-2/web"} {
		synctest.Test(t, func(t *testing.T) {
			_, err := measure(t.Context(), pipeNetwork(maxServers), time.Second, scenario{sleep: 5})
			require.ErrorContains(t, err, "failed to start "+name+": address already in use")
		})
	}
}

// The balancer uses a pod from exactly 2 s after it was added until exactly 2 s after it was removed.
func TestTheBalancerLearnsLateOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const justBefore2s, theRestOf2s = 2*time.Second - 1, 1
		b := &balancer{delay: 2 * time.Second}

		b.add("a")
		require.NoError(t, wait(t.Context(), justBefore2s))
		require.Empty(t, b.pick())
		require.NoError(t, wait(t.Context(), theRestOf2s))
		require.Equal(t, "a", b.pick())

		b.add("b")
		b.remove("a")
		require.NoError(t, wait(t.Context(), justBefore2s))
		require.Equal(t, "a", b.pick())
		require.NoError(t, wait(t.Context(), theRestOf2s))
		require.Equal(t, "b", b.pick())
	})
}

// The balancer knows no pod. The client gets the status 502, which counts as a lost request.
func TestARequestWithoutAnEndpointIsLost(t *testing.T) {
	answer := httptest.NewRecorder()
	forward(&http.Transport{}, (&balancer{}).pick).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	require.Equal(t, http.StatusBadGateway, answer.Code)
}
