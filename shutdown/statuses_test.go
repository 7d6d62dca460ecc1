//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// slowServer is a reporter whose FlushPod always takes the same time, and then calls answer. Without an error of answer it
// accepts the final status.
type slowServer struct {
	takes time.Duration

	mu           sync.Mutex
	acknowledged map[string]time.Time // when each final status was accepted, by pod name
	last         time.Time            // when the last of them was accepted
	answer       func(ctx context.Context, pod *v1.Pod) error
}

// newSlowServer returns a server that takes this time for each final status.
func newSlowServer(takes time.Duration) *slowServer {
	return &slowServer{takes: takes, acknowledged: map[string]time.Time{}}
}

// PublishNode succeeds at once.
func (s *slowServer) PublishNode(context.Context, shutdown.NodeState) error { return nil }

// FlushPod takes s.takes, and then accepts the status unless s.answer returns an error.
func (s *slowServer) FlushPod(ctx context.Context, pod *v1.Pod) error {
	err := times.Sleep(ctx, s.takes)
	if err == nil && s.answer != nil {
		err = s.answer(ctx, pod)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last = time.Now()
		s.acknowledged[pod.Name] = s.last
	}
	return err
}

// reporterWithoutMarks passes calls on to r. It is no ReadinessMarker, so pods are killed without being marked.
type reporterWithoutMarks struct{ r *shutdowntest.Reporter }

// PublishNode passes the node state on.
func (f reporterWithoutMarks) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	return f.r.PublishNode(ctx, state)
}

// FlushPod passes the pod on.
func (f reporterWithoutMarks) FlushPod(ctx context.Context, pod *v1.Pod) error {
	return f.r.FlushPod(ctx, pod)
}

// manyPods returns n pods of the first bucket, which has 20 s. They have as much.
func manyPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = shutdowntest.Pod(fmt.Sprintf("pod-%04d", i), regularPriority, 20)
	}
	return pods
}

// The final statuses of 500 pods are sent ten at a time, as fast as the server answers, and the lock is released right after the last
// answer.
func TestStatusesAreSentTenAtATime(t *testing.T) {
	for name, test := range map[string]struct{ podsTake, requestTakes time.Duration }{
		"fast server":                          {requestTakes: 20 * time.Millisecond},
		"slow server":                          {requestTakes: 500 * time.Millisecond},
		"pods that use all their grace period": {podsTake: time.Hour, requestTakes: 20 * time.Millisecond},
	} {
		subtestInBubble(t, name, manyPods(500), func(t *testing.T, n *node) {
			n.killer.Default = shutdowntest.Behaviour{Takes: test.podsTake}
			server := newSlowServer(test.requestTakes)
			n.opts.Reporter = server
			n.run()
			began := time.Now()
			n.announce()
			n.advance(time.Minute)
			require.Len(t, server.acknowledged, 500)
			require.Equal(t, server.last.Sub(began), n.releasedAfter(began))
			require.Empty(t, n.lastReport().Errors)
		})
	}
}

// 500 final statuses are sent ten at a time, and each ten take the server 970 ms. The host waits 36.5 s for the drain, which waits
// for the statuses until 36 s, and then releases the lock. By then 37 tens are acknowledged (37 * 0.97 s = 35.9 s), and the report
// has an error.
func TestADrainWaitsForStatusesUntilItsTimeIsOver(t *testing.T) {
	inBubble(t, manyPods(500), func(t *testing.T, n *node) {
		server := newSlowServer(970 * time.Millisecond)
		n.opts.Reporter = server
		n.run()
		began := time.Now()
		n.host.Announce(source.Event{Deadline: began.Add(36500 * time.Millisecond)})
		n.advance(36500 * time.Millisecond)
		require.Len(t, server.acknowledged, 37*10)
		require.GreaterOrEqual(t, n.releasedAfter(began), 36*time.Second)
		require.Less(t, n.releasedAfter(began), 36250*time.Millisecond, "half of the margin of 500 ms is left to the host")
		require.Len(t, n.lastReport().Errors, 1)
	})
}

// The server refuses the status of one pod of 300. The others are accepted in 600 ms, ten of them every 20 ms. After each
// of the two buckets the drain waits for the refused status, until the server has accepted nothing for 2.5 s.
func TestARefusedStatusDelaysNoOtherStatus(t *testing.T) {
	const patience = 2500 * time.Millisecond
	inBubble(t, append(manyPods(300), shutdowntest.Pod("etcd", criticalPriority, 10)), func(t *testing.T, n *node) {
		server := newSlowServer(20 * time.Millisecond)
		server.answer = func(_ context.Context, pod *v1.Pod) error {
			if pod.Name == "pod-0000" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, nil)
			}
			return nil
		}
		n.opts.Reporter = server
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 600*time.Millisecond+patience, n.killedAfter("etcd", began).Round(10*time.Millisecond))
		require.Equal(t, (600+20)*time.Millisecond+2*patience, n.releasedAfter(began).Round(10*time.Millisecond), "the status of etcd takes 20 ms")
		require.Len(t, server.acknowledged, 299+1, "all but one of the 300, and etcd")
		require.Equal(t, []string{`failed to flush the final statuses of 1 pods: default/pod-0000: pods "pod-0000" is forbidden: <nil>`}, n.lastReport().Errors)
		for _, pod := range n.lastReport().Pods {
			require.Equal(t, pod.Name == "pod-0000", pod.Unflushed, pod.Name)
		}
	})
}

// The server refuses a status and asks for a repetition after 2 s. The drain waits for these 2 s, not for its own pause
// of 100 ms.
func TestTheServersRetryAfterIsHeeded(t *testing.T) {
	inBubble(t, manyPods(1), func(t *testing.T, n *node) {
		var calls []time.Time
		n.opts.Reporter = flushFunc(func(*v1.Pod) error {
			if calls = append(calls, time.Now()); len(calls) == 1 {
				return apierrors.NewTooManyRequests("busy", 2)
			}
			return nil
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Len(t, calls, 2)
		require.Equal(t, 2*time.Second, calls[1].Sub(calls[0]))
	})
}

// A server refuses everything. The drain waits 2.5 s for it and then releases the lock. From then on the server gets at
// most one request every 30 s for each of the 100 pods.
func TestAServerThatRefusesEverythingIsAskedLessAndLess(t *testing.T) {
	inBubble(t, manyPods(100), func(t *testing.T, n *node) {
		var calls atomic.Int64
		n.opts.Reporter = flushFunc(func(*v1.Pod) error { calls.Add(1); return errors.New("connection refused") })
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 2500*time.Millisecond, n.releasedAfter(began))
		before := calls.Load()
		n.advance(5 * time.Minute)
		require.LessOrEqual(t, calls.Load()-before, int64(100*5*2), "100 pods, 5 minutes, 2 requests a minute")
		require.Contains(t, n.lastReport().Errors[0], "failed to flush the final statuses of 100 pods: default/pod-0000: connection refused")
	})
}

// slowMarker is a reporter whose MarkNotReady takes 8 s, even if its context ends earlier.
type slowMarker struct{ *shutdowntest.Reporter }

// MarkNotReady ignores ctx.
func (slowMarker) MarkNotReady(context.Context, *v1.Pod) error {
	<-time.After(8 * time.Second)
	return nil
}

// Ten MarkNotReady calls, as many as the manager makes at a time, take 8 s. The drain waits only 1 s for them, then kills the ten pods.
// The API server has the final statuses when the pods end, at 2 s: the calls that are still under way do not delay them.
func TestMarksThatIgnoreTheirContextsDelayNoFinalStatus(t *testing.T) {
	inBubble(t, manyPods(10), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = slowMarker{reporter}
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Len(t, reporter.Flushed(), 10)
		for _, f := range reporter.Flushed() {
			require.Equal(t, 2*time.Second, f.At.Sub(began).Round(100*time.Millisecond))
		}
	})
}
