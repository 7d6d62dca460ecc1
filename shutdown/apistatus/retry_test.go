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
			require.Equal(t, []string{"get", "patch status"}, c.verbs(), "one attempt")
		})
	}
}

// The pauses between the attempts of PublishNode start at 20 ms and double up to 500 ms; a random part of up to half of the pause is
// added to each.
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
}

// The server answers twice that PublishNode should wait for 3 s. These 3 s replace the pauses of PublishNode.
func TestPublishNodeHeedsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeOf(ready))
		c.fault = failFirst(2, "get", apierrors.NewTooManyRequests("slow down", 3))
		start := time.Now()
		require.NoError(t, c.reporter(t).PublishNode(t.Context(), reboot))
		require.Equal(t, 2*3*time.Second, time.Since(start))
	})
}

// The server answers that PublishNode should wait for 60 s, but the context of PublishNode ends after 2 s. PublishNode returns
// 50 ms before the context ends (withHeadroom), so that its caller still gets the server's answer, as the error.
func TestARetryAfterBeyondTheDeadlineEndsPublishNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeOf(ready))
		c.fault = failFirst(everyCall, "get", apierrors.NewTooManyRequests("slow down", 60))
		ctx, cancel := withTimeout(t, 2*time.Second)
		defer cancel()
		start := time.Now()
		require.True(t, apierrors.IsTooManyRequests(c.reporter(t).PublishNode(ctx, reboot)))
		require.Equal(t, 2*time.Second-50*time.Millisecond, time.Since(start))
	})
}

// hangFirst makes the first requests hang, as many as times says.
func (c *cluster) hangFirst(times int32) {
	var n atomic.Int32
	c.fault = func(ctx context.Context, call call) error {
		if n.Add(1) <= times {
			return hang(ctx, call)
		}
		return nil
	}
}

// The first request of each of three attempts hangs. PublishNode gives up the first attempt after 1 s, and the second after 2 s. The
// third would have 4 s, but its request ends after the 2 s of any request. The fourth attempt succeeds.
func TestPublishNodeGivesUpAttemptsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeOf(ready))
		c.hangFirst(3)
		start := time.Now()
		require.NoError(t, c.reporter(t).PublishNode(t.Context(), reboot))
		const hung, pauses = (1 + 2 + 2) * time.Second, (20 + 40 + 80) * time.Millisecond
		require.GreaterOrEqual(t, time.Since(start), hung+pauses)
		require.LessOrEqual(t, time.Since(start), hung+pauses*3/2, "up to half of each pause is added to it")
	})
}

// PublishNode has 2 s, and its first request hangs. It gives up the first attempt after a quarter of the 2 s, and the second one
// succeeds after a pause of 20 ms to 30 ms.
func TestAnAttemptOfPublishNodeHasAQuarterOfTheRemainingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeOf(ready))
		c.hangFirst(1)
		ctx, cancel := withTimeout(t, 2*time.Second)
		defer cancel()
		start := time.Now()
		require.NoError(t, c.reporter(t).PublishNode(ctx, reboot))
		require.LessOrEqual(t, time.Since(start), (500+30)*time.Millisecond)
	})
}

// Every attempt of PublishNode fails. It ends when its context is cancelled, and its error also has the last failure of the server.
func TestPublishNodeEndsWithItsContext(t *testing.T) {
	errCause := errors.New("cancelled by the test")
	for name, test := range map[string]struct {
		fault func(context.Context, call) error
		want  string
	}{
		"refused": {fault: failFirst(everyCall, anyVerb, errRefused), want: `gave up: cancelled by the test: failed to read node "node-1": connect: connection refused`},
		"hangs":   {fault: hang, want: `gave up: cancelled by the test: failed to read node "node-1": no answer within 2s: Get "http://server": context deadline exceeded`},
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
	t.Run("cancelled before the call", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errCause)
		c := newCluster(nodeOf(ready))
		require.EqualError(t, c.reporter(t).PublishNode(ctx, reboot), "gave up: cancelled by the test")
		require.Empty(t, c.verbs())
	})
}

// Every attempt of PublishNode fails. It ends shortly before its deadline: 5 % of its time earlier, but at most 50 ms.
func TestPublishNodeEndsShortlyBeforeItsDeadline(t *testing.T) {
	for timeout, early := range map[time.Duration]time.Duration{
		time.Minute: 50 * time.Millisecond, 500 * time.Millisecond: 25 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(nodeOf(ready))
			c.fault = failFirst(everyCall, "patch status", errRefused)
			ctx, cancel := withTimeout(t, timeout)
			defer cancel()
			start := time.Now()
			require.ErrorIs(t, c.reporter(t).PublishNode(ctx, reboot), errRefused)
			require.Equal(t, timeout-early, time.Since(start))
		})
	}
}
