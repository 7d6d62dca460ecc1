package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// callTimes records when the calls of a server began, as the time since another moment.
type callTimes struct {
	mu sync.Mutex
	at []time.Duration
}

func (r *callTimes) record(since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Since(since))
}

// mostPerSecond returns the largest number of calls within a second, of all seconds after from.
func (r *callTimes) mostPerSecond(from time.Duration) (most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.at)
	for i, at := range r.at {
		if at < from {
			continue
		}
		end, _ := slices.BinarySearch(r.at, at+time.Second)
		most = max(most, end-i)
	}
	return most
}

// A server that acknowledges nothing costs the publishing of the node's state, one wait of
// 2.5 s for the statuses and one second for each further bucket, and no pod any of its time.
func TestServerThatAcknowledgesNothing(t *testing.T) {
	silent := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	refusing := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		answer  func(context.Context) error
		publish bool // the server gives the same answer to the node state
		rate    int  // requests in any second but the first
	}{
		"refuses connections":    {refusing(errors.New("connection refused")), true, 3},
		"silent":                 {silent, true, 10},
		"403":                    {refusing(apierrors.NewForbidden(pods, "web", nil)), false, 3},
		"500":                    {refusing(apierrors.NewInternalError(errors.New("etcd"))), true, 3},
		"429":                    {refusing(apierrors.NewTooManyRequestsError("slow down")), true, 2},
		"429 with a second":      {refusing(apierrors.NewTooManyRequests("slow down", 1)), true, 2},
		"429 with a long minute": {refusing(apierrors.NewTooManyRequests("slow down", 60)), true, 1},
	} {
		for _, marks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, marks %t", name, marks), func(t *testing.T) {
				inBubble(t, nil, func(t *testing.T, n *node) {
					n.opts.Config = config(0, 0, priorityPeriod(0, 10), priorityPeriod(1, 20), priorityPeriod(2, 30))
					for i := range 100 {
						n.pods = append(n.pods, shutdowntest.Pod(fmt.Sprintf("pod-%d", i), int32(i%3), 60))
					}
					server := &deadServer{answer: test.answer, publish: test.publish, began: time.Now()}
					n.opts.Reporter = deadFlusher{server}
					if marks {
						n.opts.Reporter = deadMarker{deadFlusher{server}}
					}
					n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
					n.run()
					n.advance(time.Minute)
					server.callTimes = callTimes{}
					began := time.Now()
					server.began = began
					n.announce()
					n.advance(5 * time.Minute)

					for _, kill := range n.killer.Kills() {
						require.EqualValues(t, 10+10**kill.Pod.Spec.Priority, *kill.Request.GracePeriodSeconds, "as without a reporter")
					}
					most := 60*time.Second + 2500*time.Millisecond + 2*time.Second
					if test.publish {
						most += 2 * time.Second
					}
					if marks && !test.publish {
						most += 3 * time.Second // each mark is waited for, as the server has answered
					}
					require.LessOrEqual(t, n.releasedAfter(began), most)
					server.mu.Lock()
					total := len(server.at)
					server.mu.Unlock()
					t.Logf("%s, marks %t: %d requests in 5 minutes, released after %v", name, marks, total, n.releasedAfter(began))
					require.LessOrEqual(t, server.mostPerSecond(30*time.Second), test.rate)
					require.LessOrEqual(t, server.mostPerSecond(0), 35)
					require.Contains(t, strings.Join(n.lastReport().Errors, "\n"), "failed to flush the final statuses of 100 pods")
				})
			})
		}
	}
}

// deadServer acknowledges no final status and no mark.
type deadServer struct {
	callTimes

	answer  func(context.Context) error
	publish bool
	began   time.Time
}

type deadFlusher struct{ *deadServer }

func (d deadFlusher) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	if d.publish && state.ShuttingDown {
		return d.answer(ctx)
	}
	return nil
}

func (d deadFlusher) FlushPod(ctx context.Context, _ *v1.Pod) error {
	d.record(d.began)
	return d.answer(ctx)
}

type deadMarker struct{ deadFlusher }

func (d deadMarker) MarkNotReady(ctx context.Context, _ *v1.Pod) error {
	d.record(d.began)
	return d.answer(ctx)
}

// A status that the server always refuses delays no other status. It costs one wait in each
// bucket.
func TestServerThatRefusesOnePod(t *testing.T) {
	inBubble(t, manyPods(300, 20), func(t *testing.T, n *node) {
		n.pods = append(n.pods, shutdowntest.Pod("etcd", topPriority, 10))
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
		acked, _ := server.acknowledgedBefore(began.Add(4 * time.Second))
		require.Equal(t, 300, acked)
		require.Equal(t, 600*time.Millisecond+2500*time.Millisecond, n.killedAfter("etcd", began).Round(10*time.Millisecond))
		require.Equal(t, 620*time.Millisecond+2*2500*time.Millisecond, n.releasedAfter(began).Round(10*time.Millisecond), "etcd's was acknowledged between the two")
		require.Equal(t, []string{`failed to flush the final statuses of 1 pods: pod default/pod-0000: pods "pod-0000" is forbidden: <nil>`}, n.lastReport().Errors)
		for _, pod := range n.lastReport().Pods {
			require.Equal(t, pod.Name == "pod-0000", pod.Unflushed, pod.Name)
		}
	})
}
