//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Prepare runs before the pods are listed. The manager requests 2 s for it. A Prepare that hangs costs 2 s of
// a host's 13 s, and the buckets share the rest.
func TestPrepareRunsBeforeThePodsAreListed(t *testing.T) {
	for name, test := range map[string]struct {
		limit, takes, listed time.Duration
		granted              map[string]int64
		errs                 []string
	}{
		"ends":           {time.Minute, 1500 * time.Millisecond, 1500 * time.Millisecond, map[string]int64{"web": 20, "etcd": 10}, nil},
		"takes no time":  {time.Minute, 0, 0, map[string]int64{"web": 22, "etcd": 10}, nil},
		"takes too long": {time.Minute, time.Hour, 2 * time.Second, map[string]int64{"web": 20, "etcd": 10}, []string{"Prepare did not return in time"}},
		"a short limit":  {13 * time.Second, time.Hour, 2 * time.Second, map[string]int64{"web": 7, "etcd": 4}, []string{"Prepare did not return in time"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				useGreedyPods(n)
				n.opts.Prepare = func(ctx context.Context) error { return waitOrCancelled(ctx, test.takes) }
				var listed []time.Time
				n.opts.ListPods = shutdown.ListPodsFunc(func() []*v1.Pod {
					listed = append(listed, time.Now())
					return n.currentPods()
				}, nil)
				n.run()
				require.Equal(t, []time.Duration{34500 * time.Millisecond}, n.host.RequestedDelays())
				began := time.Now()
				n.host.Announce(source.Event{Deadline: began.Add(test.limit)})
				n.advance(2 * time.Minute)
				require.Equal(t, test.listed, listed[0].Sub(began))
				require.Equal(t, test.listed, n.killedAfter("web", began))
				require.Equal(t, test.granted, n.grantedSeconds())
				require.Equal(t, test.errs, n.lastReport().Errors)
				require.LessOrEqual(t, n.releasedAfter(began), test.limit)
			})
		})
	}
}

// A cancellation ends Prepare without an error, and no pod is killed.
func TestACancellationEndsPrepare(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		n.opts.Prepare = func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
		n.run()
		n.announce()
		n.host.Cancel()
		n.advance(time.Minute)
		require.Empty(t, n.killer.Kills())
		require.True(t, n.lastReport().Cancelled)
		require.Empty(t, n.lastReport().Errors)
	})
}
