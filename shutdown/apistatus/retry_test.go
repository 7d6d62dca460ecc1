package apistatus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// crowd is n pods of a node that run, and the same with their final status.
func crowd(n int) (servers []runtime.Object, pods []*v1.Pod) {
	for i := range n {
		server := running(fmt.Sprintf("web-%03d", i))
		servers, pods = append(servers, server), append(pods, ended(server))
	}
	return servers, pods
}

func TestWhatIsTriedAgain(t *testing.T) {
	for name, err := range map[string]error{
		"a conflict":          answered(http.StatusConflict),
		"too many requests":   answered(http.StatusTooManyRequests),
		"a request's timeout": answered(http.StatusRequestTimeout),
		"an internal error":   answered(http.StatusInternalServerError),
		"no service":          answered(http.StatusServiceUnavailable),
		"a gateway":           answered(http.StatusGatewayTimeout),
		"a network":           errRefused,
		"a rate limiter":      errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline"),
	} {
		for _, verb := range []string{"get", "patch status", "delete"} {
			t.Run(name+" of a "+verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(running("web"))
					c.fault = first(3, verb, err)
					pod := ended(running("web"))
					pod.DeletionTimestamp = &before
					require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{pod}))
					require.Len(t, c.all("get"), 4, "every attempt begins with what is there")
				})
			})
		}
	}
}

func TestWhatIsNotTriedAgain(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			c := newCluster(running("web"))
			c.fault = first(1, "patch status", answered(code))
			err := c.reporter(t).FlushPods(t.Context(), []*v1.Pod{ended(running("web"))})
			require.Equal(t, []string{"default/web"}, names(t, err))
			require.ErrorContains(t, err, "failed to patch the pod's status: ")
			require.NotContains(t, err.Error(), "given up")
			require.Equal(t, []string{"get", "patch status"}, c.verbs())
		})
	}
}

func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(running("web"))
		c.fault = first(8, "get", errRefused)
		require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{ended(running("web"))}))
		calls, pause := c.all("get"), 20*time.Millisecond
		for i := range 8 {
			took := calls[i+1].At.Sub(calls[i].At)
			require.GreaterOrEqual(t, took, pause)
			require.LessOrEqual(t, took, pause+pause/2)
			pause = min(2*pause, 500*time.Millisecond)
		}
	})
}

// hang waits until the request is given up.
func hang(ctx context.Context, _ call) error {
	<-ctx.Done()
	return &url.Error{Op: "Get", URL: "http://server", Err: context.Cause(ctx)}
}

func TestAnAttemptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(running("web"))
		var n atomic.Int32
		c.fault = func(ctx context.Context, call call) error {
			if n.Add(1) <= 4 {
				return hang(ctx, call)
			}
			return nil
		}
		r := c.reporter(t, func(opts *apistatus.Options) { opts.AttemptTimeout = 100 * time.Millisecond })
		start := time.Now()
		require.NoError(t, r.FlushPods(t.Context(), []*v1.Pod{ended(running("web"))}))
		took := time.Since(start)
		require.GreaterOrEqual(t, took, (100+200+400+800+20+40+80+160)*time.Millisecond)
		require.LessOrEqual(t, took, (100+200+400+800+30+60+120+240)*time.Millisecond)
	})
}

func TestTheFirstBound(t *testing.T) {
	for name, test := range map[string]struct{ attempt, left, want time.Duration }{
		"the default":         {0, time.Hour, time.Second},
		"of the options":      {3 * time.Second, time.Hour, 3 * time.Second},
		"a quarter of little": {0, time.Second, 237500 * time.Microsecond}, // less the head start
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(nodeOf(ready))
				var bound time.Duration
				c.fault = func(ctx context.Context, _ call) error {
					end, _ := ctx.Deadline()
					bound = time.Until(end)
					return answered(http.StatusForbidden)
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.left)
				defer cancel()
				r := c.reporter(t, func(opts *apistatus.Options) { opts.AttemptTimeout = test.attempt })
				require.Error(t, r.PublishNode(ctx, reboot))
				require.Equal(t, test.want, bound)
			})
		})
	}
}

func TestAStuckConnectionDoesNotCostTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, pods := crowd(20)
		c := newCluster(servers...)
		var n atomic.Int32
		c.fault = func(ctx context.Context, call call) error {
			if n.Add(1) <= 20 {
				return hang(ctx, call)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), plan.DefaultFlushReserve/2)
		defer cancel()
		require.NoError(t, c.reporter(t).FlushPods(ctx, pods))
	})
}

func TestTheEndOfTheTime(t *testing.T) {
	spent := errors.New("the time of the bucket is spent")
	for name, test := range map[string]struct {
		fault func(context.Context, call) error
		want  string
	}{
		"refused":     {func(context.Context, call) error { return errRefused }, "given up: the time of the bucket is spent: failed to read the pod: connect: connection refused"},
		"stuck":       {hang, "given up: the time of the bucket is spent: no answer within 2s: failed to read the pod: Get \"http://server\": context deadline exceeded"},
		"the patches": {first(1e6, "patch status", answered(http.StatusConflict)), "given up: the time of the bucket is spent: failed to patch the pod's status: "},
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

func TestNothingToFlush(t *testing.T) {
	c := newCluster()
	require.NoError(t, c.reporter(t).FlushPods(t.Context(), nil))
	require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{nil}))
	require.NoError(t, c.reporter(t).MarkReady(t.Context(), nil, false))
	require.Empty(t, c.verbs())
}

func TestWorkers(t *testing.T) {
	for workers, want := range map[int]int32{0: apistatus.DefaultWorkers, 1: 1, 7: 7} {
		t.Run(strconv.Itoa(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, pods := crowd(60)
				c := newCluster(servers...)
				var now, most atomic.Int32
				c.fault = func(context.Context, call) error {
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					<-time.After(10 * time.Millisecond)
					return nil
				}
				r := c.reporter(t, func(opts *apistatus.Options) { opts.Workers = workers })
				require.NoError(t, r.FlushPods(t.Context(), pods))
				require.Equal(t, want, most.Load())
			})
		})
	}
}

func TestPodsThatNeverSucceedKeepNobodyFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, pods := crowd(60)
		c := newCluster(servers...)
		c.fault = func(_ context.Context, call call) error {
			if call.Name < "web-030" { // more than there are workers
				return errRefused
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Len(t, names(t, c.reporter(t).FlushPods(ctx, pods)), 30)
		require.Equal(t, v1.PodFailed, c.pod(t, "web-059").Status.Phase)
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
			require.ErrorContains(t, err, "and 492 more kinds of errors")
		})
	})
}

func TestACallOfThePastHasNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, pods := crowd(40)
		c := newCluster(servers...)
		c.fault = func(ctx context.Context, _ call) error {
			<-ctx.Done()
			<-time.After(time.Second) // a client that is slow to hear of it
			return ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.Error(t, c.reporter(t).FlushPods(ctx, pods))
		require.Equal(t, 1023750*time.Microsecond, time.Since(start), "a quarter of the time, and those who heard of it late")
	})
}

func TestConcurrentCalls(t *testing.T) {
	servers, pods := crowd(40)
	c := newCluster(append(servers, nodeOf(ready))...)
	r := c.reporter(t)
	results := make(chan error, 3)
	go func() { results <- r.FlushPods(t.Context(), pods) }()
	go func() { results <- r.MarkReady(t.Context(), pods, false) }()
	go func() { results <- r.PublishNode(t.Context(), shutdown.NodeState{ShuttingDown: true}) }()
	for range 3 {
		require.NoError(t, <-results)
	}
}
