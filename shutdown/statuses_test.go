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

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
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
	err := waitOrCancelled(ctx, s.takes)
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

// acknowledgedBefore returns how many final statuses were acknowledged at t or before.
func (s *slowServer) acknowledgedBefore(t time.Time) (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.acknowledged {
		if isLater := at.After(t); !isLater {
			count++
		}
	}
	return count
}

// waitOrCancelled waits for d and returns nil. If ctx ends first, it returns the cause of ctx.
func waitOrCancelled(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// flusher passes calls on to r. It is no ReadinessMarker, so pods are killed without being marked.
type flusher struct{ r *shutdowntest.Reporter }

// PublishNode passes the node state on.
func (f flusher) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	return f.r.PublishNode(ctx, state)
}

// FlushPod passes the pod on.
func (f flusher) FlushPod(ctx context.Context, pod *v1.Pod) error { return f.r.FlushPod(ctx, pod) }

// manyPods returns n pods of the first bucket with this grace period, in seconds.
func manyPods(n int, grace int64) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = shutdowntest.Pod(fmt.Sprintf("pod-%04d", i), regularPriority, grace)
	}
	return pods
}

// The final statuses of 500 pods are sent ten at a time, as fast as the server answers, and the lock is released right
// after the last answer. The drain waits for them until 36 s after the announcement. A server that needs 970 ms for each
// ten has accepted 370 by then (37 * 0.97 s = 35.9 s), and the report has an error.
func TestStatusesAreSentTenAtATime(t *testing.T) {
	// The delay that the agent requests: 20 s and 10 s for the pods of the two buckets, 1 s for the statuses of each, 2 s
	// for publishing, 2 s for containers that have used up their grace period, and the margin.
	const requested = 36500 * time.Millisecond
	const margin = 500 * time.Millisecond            // for the report and the release of the lock
	const hostTime = requested + 50*time.Millisecond // so that no answer comes at the very end
	const mostWait = requested - margin
	for name, test := range map[string]struct {
		podsTake     time.Duration
		requestTakes time.Duration
		acknowledged int
	}{
		"fast server":                          {requestTakes: 20 * time.Millisecond, acknowledged: 500},
		"slow server":                          {requestTakes: 500 * time.Millisecond, acknowledged: 500},
		"server that is too slow":              {requestTakes: 970 * time.Millisecond, acknowledged: 370},
		"pods that use all their grace period": {podsTake: time.Hour, requestTakes: 20 * time.Millisecond, acknowledged: 500},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, manyPods(500, 20), func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: test.podsTake}
				server := newSlowServer(test.requestTakes)
				n.opts.Reporter = server
				n.run()
				began := time.Now()
				n.host.Announce(source.Event{Deadline: began.Add(hostTime)})
				n.advance(hostTime)
				released, last := n.releasedAfter(began), server.last.Sub(began)
				require.Len(t, server.acknowledged, test.acknowledged)
				if test.acknowledged == 500 {
					require.Equal(t, last, released)
					require.Empty(t, n.lastReport().Errors)
					return
				}
				require.LessOrEqual(t, released, mostWait+margin/2, "the lock is released half-way through the margin")
				require.GreaterOrEqual(t, released, mostWait)
				require.Len(t, n.lastReport().Errors, 1)
			})
		})
	}
}

// The server refuses the status of one pod of 300. The others are accepted in 600 ms, ten of them every 20 ms. After each
// of the two buckets the drain waits for statuses, until the server has accepted nothing for 2.5 s. The refused status
// therefore costs 2.5 s twice. The status of etcd, in the second bucket, takes 20 ms.
func TestARefusedStatusDelaysNoOtherStatus(t *testing.T) {
	inBubble(t, manyPods(300, 20), func(t *testing.T, n *node) {
		n.pods = append(n.pods, shutdowntest.Pod("etcd", criticalPriority, 10))
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
		require.Equal(t, 300, server.acknowledgedBefore(began.Add(4*time.Second)), "299 of manyPods, and etcd")
		require.Equal(t, 600*time.Millisecond+2500*time.Millisecond, n.killedAfter("etcd", began).Round(10*time.Millisecond))
		require.Equal(t, 620*time.Millisecond+2*2500*time.Millisecond, n.releasedAfter(began).Round(10*time.Millisecond), "two waits of 2.5 s; the status of etcd was acknowledged between them")
		require.Equal(t, []string{`failed to flush the final statuses of 1 pods: default/pod-0000: pods "pod-0000" is forbidden: <nil>`}, n.lastReport().Errors)
		for _, pod := range n.lastReport().Pods {
			require.Equal(t, pod.Name == "pod-0000", pod.Unflushed, pod.Name)
		}
	})
}

// The server refuses a status and asks for a repetition after 2 s. The drain waits for these 2 s, not for its own pause
// of 100 ms.
func TestTheServersRetryAfterIsHeeded(t *testing.T) {
	inBubble(t, manyPods(1, 5), func(t *testing.T, n *node) {
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
	inBubble(t, manyPods(100, 5), func(t *testing.T, n *node) {
		var calls atomic.Int64
		n.opts.Reporter = flushFunc(func(*v1.Pod) error { calls.Add(1); return errors.New("connection refused") })
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 2500*time.Millisecond, n.releasedAfter(began))
		before := calls.Load()
		n.advance(5 * time.Minute)
		require.LessOrEqual(t, calls.Load()-before, int64(100*5*2), "100 pods, five minutes, two requests a minute")
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

// Ten MarkNotReady calls, as many as the manager makes at a time, go on after the kills, for which they come too late. They
// delay no final status: all ten pods are killed after 1 s, and the API server has their statuses when they end, at 2 s.
func TestMarksThatIgnoreTheirContextsDelayNoFinalStatus(t *testing.T) {
	var pods []*v1.Pod
	for i := range 10 {
		pods = append(pods, shutdowntest.Pod(fmt.Sprint("web-", i), regularPriority, 30))
	}
	inBubble(t, pods, func(t *testing.T, n *node) {
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
