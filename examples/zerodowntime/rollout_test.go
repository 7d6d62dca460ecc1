package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// enough is more servers than the rolling updates start.
const enough = 1000

func TestLostRequests(t *testing.T) {
	const delay = 1500 * time.Millisecond
	for _, test := range []struct {
		scenario    scenario
		delay       time.Duration
		least, most int           // how many requests are lost
		longest     time.Duration // the longest stop of a pod, without the requests that it answers at its end
	}{
		// Each of 3 pods refuses its share of 50 requests a second, a third or a quarter, for 1.5 s. The shares get
		// smaller while the load balancer knows more pods.
		{scenario{}, delay, 45, 75, 0},
		{scenario{sleep: 5}, delay, 0, 0, 5 * time.Second},
		{scenario{sleep: 5}, 8 * time.Second, 45, 150, 5 * time.Second}, // 3 s too short
		{scenario{sleep: 5, grace: 1}, delay, 10, 25, time.Second},      // 0.5 s too short
		{scenario{sleep: 5, proxy: proxyAsMain}, delay, 45, 75, 5 * time.Second},
		{scenario{sleep: 5, proxy: proxyAsSidecar}, delay, 0, 0, 5 * time.Second},
	} {
		t.Run(test.scenario.String()+", late "+test.delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := measure(t.Context(), pipeNetwork(enough), test.delay, test.scenario)
				require.NoError(t, err)
				require.Equal(t, test.scenario, r.scenario)
				require.Greater(t, r.sent, 250)
				require.GreaterOrEqual(t, r.lost, test.least)
				require.LessOrEqual(t, r.lost, test.most)
				require.InDelta(t, test.longest.Seconds(), r.longest.Seconds(), 0.2)
			})
		})
	}
}

// The bubble fails if anything is left running.
func TestARollingUpdateEndsWithItsContext(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"before the requests":        time.Second,
		"before the rolling update":  2 * time.Second,
		"during it":                  4500 * time.Millisecond,
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
				_, err := measure(ctx, pipeNetwork(enough), 1500*time.Millisecond, scenario{sleep: 5, proxy: proxyAsSidecar})
				require.ErrorIs(t, err, reason)
				require.Less(t, time.Since(start), after+time.Second)
			})
		})
	}
}

func TestAContainerThatDoesNotStartEndsTheRollingUpdate(t *testing.T) {
	for most, name := range map[int]string{0: "balancer", 3: "old-3/web", 5: "new-2/web"} {
		synctest.Test(t, func(t *testing.T) {
			_, err := measure(t.Context(), pipeNetwork(most), time.Second, scenario{sleep: 5})
			require.ErrorContains(t, err, "failed to start "+name+": address already in use")
		})
	}
}
