//go:build go1.25

package apistatus_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The first three reads or patches of PublishNode fail. PublishNode tries again, and the fourth attempt succeeds. It does not
// try again if the API server has refused the request: another attempt would get the same answer.
func TestPublishNodeRetriesAllErrorsButRefusals(t *testing.T) {
	for name, err := range map[string]error{
		"a conflict":        statusError(http.StatusConflict),
		"too many requests": statusError(http.StatusTooManyRequests),
		"a request timeout": statusError(http.StatusRequestTimeout),
		"an internal error": statusError(http.StatusInternalServerError),
		"not available":     statusError(http.StatusServiceUnavailable),
		"a gateway timeout": statusError(http.StatusGatewayTimeout),
		"a network error":   errRefused,
		"the rate limiter":  errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline"),
	} {
		for _, verb := range []string{"get", "patch status"} {
			t.Run(name+" of a "+verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(nodeOf(ready))
					c.fault = failFirst(3, verb, err)
					require.NoError(t, c.reporter(t).PublishNode(t.Context(), reboot))
					require.Len(t, c.callsOf("get"), 4, "each attempt reads the node")
				})
			})
		}
	}
	for _, code := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity} {
		t.Run("refused: "+http.StatusText(code), func(t *testing.T) {
			c := newCluster(nodeOf(ready))
			c.fault = failFirst(1, "patch status", statusError(code))
			err := c.reporter(t).PublishNode(t.Context(), reboot)
			require.ErrorContains(t, err, `failed to patch the status of node "node-1": `)
			require.NotContains(t, err.Error(), "gave up")
			require.Equal(t, []string{"get", "patch status"}, c.verbs())
		})
	}
}

// The pauses between attempts start at 20 ms and double up to 500 ms; a random part of up to half of the pause is added
// to each. A Retry-After of the server replaces the pause. If Retry-After is longer than the remaining time, PublishNode
// ends 50 ms before its deadline.
func TestPublishNodePausesBetweenItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeOf(ready))
		c.fault = failFirst(8, "get", errRefused)
		require.NoError(t, c.reporter(t).PublishNode(t.Context(), reboot))
		calls, pause := c.callsOf("get"), 20*time.Millisecond
		for i := range 8 {
			took := calls[i+1].At.Sub(calls[i].At)
			require.GreaterOrEqual(t, took, pause)
			require.LessOrEqual(t, took, pause+pause/2)
			pause = min(2*pause, 500*time.Millisecond)
		}
	})
	t.Run("Retry-After", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(nodeOf(ready))
			c.fault = failFirst(2, "get", apierrors.NewTooManyRequests("slow down", 3))
			start := time.Now()
			require.NoError(t, c.reporter(t).PublishNode(t.Context(), reboot))
			require.Equal(t, 2*3*time.Second, time.Since(start), "the server asks for 3 s twice")
		})
	})
	t.Run("Retry-After longer than the remaining time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(nodeOf(ready))
			c.fault = failFirst(2, "get", apierrors.NewTooManyRequests("slow down", 60))
			ctx, cancel := withTimeout(t, 2*time.Second)
			defer cancel()
			start := time.Now()
			require.True(t, apierrors.IsTooManyRequests(c.reporter(t).PublishNode(ctx, reboot)))
			require.Equal(t, 2*time.Second-50*time.Millisecond, time.Since(start))
		})
	})
}

// The first requests hang. PublishNode gives up the first attempt after 1 s, or after a quarter of the remaining time if
// that is less, the next after twice this time, and so on. A request within an attempt has at most 2 s, so the third
// attempt, whose first request hangs, also ends after 2 s. An attempt that does not hang succeeds. The pauses in between
// are 20 ms, 40 ms and 80 ms, and up to half as much again.
func TestPublishNodeGivesUpAttemptsThatHang(t *testing.T) {
	hangFirst := func(c *cluster, times int32) {
		var n atomic.Int32
		c.fault = func(ctx context.Context, call call) error {
			if n.Add(1) <= times {
				return hang(ctx, call)
			}
			return nil
		}
	}
	t.Run("1 s, then twice as long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(nodeOf(ready))
			hangFirst(c, 3)
			start := time.Now()
			require.NoError(t, c.reporter(t).PublishNode(t.Context(), reboot))
			took := time.Since(start)
			require.GreaterOrEqual(t, took, (1000+2000+2000+20+40+80)*time.Millisecond, "the third attempt would have 4 s, but its request has 2 s")
			require.LessOrEqual(t, took, (1000+2000+2000+30+60+120)*time.Millisecond)
		})
	})
	t.Run("a quarter of the remaining time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(nodeOf(ready))
			hangFirst(c, 1)
			ctx, cancel := withTimeout(t, 2*time.Second)
			defer cancel()
			start := time.Now()
			require.NoError(t, c.reporter(t).PublishNode(ctx, reboot))
			require.LessOrEqual(t, time.Since(start), (500+30)*time.Millisecond, "a quarter of 2 s, and one pause")
		})
	})
}

// Every attempt of PublishNode fails. It ends when its context is cancelled, or shortly before the deadline: 5 % of its
// time, but at most 50 ms, earlier. The error also has the last failure of the server.
func TestPublishNodeEndsWithItsContext(t *testing.T) {
	errCause := errors.New("cancelled by the test")
	for name, test := range map[string]struct {
		fault func(context.Context, call) error
		want  string
	}{
		"refused": {failFirst(everyCall, anyVerb, errRefused), `gave up: cancelled by the test: failed to read node "node-1": connect: connection refused`},
		"hangs":   {hang, `gave up: cancelled by the test: failed to read node "node-1": no answer within 2s: Get "http://server": context deadline exceeded`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(nodeOf(ready))
				c.fault = test.fault
				ctx, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(7*time.Second, func() { cancel(errCause) }).Stop()
				start := time.Now()
				err := c.reporter(t).PublishNode(ctx, reboot)
				require.Equal(t, 7*time.Second, time.Since(start))
				require.ErrorContains(t, err, test.want)
				require.ErrorIs(t, err, errCause)
			})
		})
	}
	t.Run("shortly before the deadline", func(t *testing.T) {
		for left, early := range map[time.Duration]time.Duration{
			time.Minute: 50 * time.Millisecond, 500 * time.Millisecond: 25 * time.Millisecond,
		} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(nodeOf(ready))
				c.fault = failFirst(everyCall, "patch status", errRefused)
				ctx, cancel := withTimeout(t, left)
				defer cancel()
				start := time.Now()
				require.ErrorIs(t, c.reporter(t).PublishNode(ctx, reboot), errRefused)
				require.Equal(t, left-early, time.Since(start))
			})
		}
	})
	t.Run("cancelled before the call", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errCause)
		c := newCluster(nodeOf(ready))
		require.EqualError(t, c.reporter(t).PublishNode(ctx, reboot), "gave up: cancelled by the test")
		require.Empty(t, c.verbs())
	})
}
