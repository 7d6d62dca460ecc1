package apistatus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// names are those of the pods that were not acknowledged.
func names(t *testing.T, err error) []string {
	t.Helper()
	var unflushed *shutdown.UnflushedError
	ok := errors.As(err, &unflushed)
	require.True(t, ok, "%v", err)
	var names []string
	for _, pod := range unflushed.Pods {
		names = append(names, pod.String())
	}
	return names
}

func TestNothingToFlush(t *testing.T) {
	c := newCluster()
	require.NoError(t, c.reporter(t).FlushPods(t.Context(), nil))
	require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{nil}))
	require.NoError(t, c.reporter(t).MarkReady(t.Context(), nil, false))
	require.Empty(t, c.verbs())
}

func TestTheEndOfTheTime(t *testing.T) {
	spent := errors.New("the time of the bucket is spent")
	for name, test := range map[string]struct {
		fault func(context.Context, call) error
		want  string
	}{
		"refused":     {func(context.Context, call) error { return errRefused }, "given up: the time of the bucket is spent: failed to patch the status of pod default/web-000: connect: connection refused"},
		"the patches": {first(1e6, "patch status", answered(http.StatusConflict)), "given up: the time of the bucket is spent: failed to patch the status of pod default/web-000: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, pods := crowd(100)
				c := newCluster(servers...)
				c.fault = test.fault
				ctx, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(7*time.Second, func() { cancel(spent) }).Stop()
				start := time.Now()
				err := c.reporter(t).FlushPods(ctx, pods)
				require.Equal(t, 7*time.Second, time.Since(start))
				require.Len(t, names(t, err), 100)
				require.ErrorContains(t, err, test.want)
				require.ErrorIs(t, err, spent)
			})
		})
	}
	t.Run("a moment before a deadline", func(t *testing.T) {
		for left, early := range map[time.Duration]time.Duration{
			time.Minute: 50 * time.Millisecond, 500 * time.Millisecond: 25 * time.Millisecond,
		} {
			synctest.Test(t, func(t *testing.T) {
				servers, pods := crowd(2)
				c := newCluster(servers...)
				c.fault = first(1e6, "patch status", errRefused)
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				start := time.Now()
				require.ErrorIs(t, c.reporter(t).FlushPods(ctx, pods), errRefused)
				require.Equal(t, left-early, time.Since(start))
			})
		}
	})
	t.Run("over already", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(spent)
		servers, pods := crowd(3)
		c := newCluster(servers...)
		err := c.reporter(t).FlushPods(ctx, pods)
		require.Equal(t, []string{"default/web-000", "default/web-001", "default/web-002"}, names(t, err))
		require.EqualError(t, err, "the status of 3 pods was not acknowledged: given up: the time of the bucket is spent")
		require.Empty(t, c.verbs())
	})
}

func TestReasonsAreSaidOnce(t *testing.T) {
	servers, pods := crowd(500)
	pods = append(pods, pods[7])
	refused := func(name string, port int) error {
		return &url.Error{Op: "Get", URL: "http://server/" + name, Err: &net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: errors.New("connection reset by peer"),
		}}
	}
	t.Run("of a network", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(servers...)
			var port atomic.Int32
			c.fault = func(_ context.Context, call call) error { return refused(call.Name, int(port.Add(1))) }
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := c.reporter(t).FlushPods(ctx, pods)
			require.Len(t, names(t, err), 500, "each once")
			require.Less(t, len(err.Error()), 400, "%v", err)
		})
	})
	t.Run("of answers", func(t *testing.T) {
		c := newCluster(servers...)
		c.fault = func(_ context.Context, call call) error {
			return answered(map[bool]int{true: http.StatusForbidden, false: http.StatusUnauthorized}[call.Name < "web-100"])
		}
		err := c.reporter(t).FlushPods(t.Context(), pods)
		require.Less(t, len(err.Error()), 600, "%v", err)
	})
	t.Run("of many kinds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(servers...)
			c.fault = func(_ context.Context, call call) error { return fmt.Errorf("%s is odd", call.Name) }
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := c.reporter(t).FlushPods(ctx, pods)
			require.ErrorContains(t, err, "web-007 is odd")
			require.NotContains(t, err.Error(), "web-008 is odd")
			require.ErrorContains(t, err, " more kinds of errors")
		})
	})
}
