package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The balancer uses a pod from exactly 2 s after it was added until exactly 2 s after it was removed.
func TestTheBalancerLearnsLateOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &balancer{delay: 2 * time.Second}
		b.add("a")
		require.NoError(t, wait(t.Context(), 2*time.Second-1))
		require.Empty(t, b.pick())
		require.NoError(t, wait(t.Context(), 1))
		require.Equal(t, "a", b.pick())
		b.add("b")
		b.remove("a")
		require.NoError(t, wait(t.Context(), 2*time.Second-1))
		require.Equal(t, "a", b.pick())
		require.NoError(t, wait(t.Context(), 1))
		require.Equal(t, "b", b.pick())
	})
}

// If the balancer knows no pod, the client gets 502, which counts as a lost request.
func TestARequestWithoutAnEndpointIsLost(t *testing.T) {
	answer := httptest.NewRecorder()
	forward(&http.Transport{}, (&balancer{}).pick).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	require.Equal(t, http.StatusBadGateway, answer.Code)
}
