//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Prepare runs before the pods are listed. The host is asked for its time, so that the pods keep
// theirs. It has two seconds, never less, and the pods have what is left.
func TestPrepare(t *testing.T) {
	for name, test := range map[string]struct {
		limit, takes, listed time.Duration
		granted              map[string]int64
		errs                 []string
	}{
		"ends":               {time.Minute, 1500 * time.Millisecond, 1500 * time.Millisecond, map[string]int64{"web": 20, "etcd": 10}, nil},
		"takes no time":      {time.Minute, 0, 0, map[string]int64{"web": 20, "etcd": 10}, nil},
		"takes too long":     {time.Minute, time.Hour, 2 * time.Second, map[string]int64{"web": 20, "etcd": 10}, []string{"failed to prepare the shutdown: the time for it was spent"}},
		"is never shortened": {13 * time.Second, time.Hour, 2 * time.Second, map[string]int64{"web": 1, "etcd": 10}, []string{"failed to prepare the shutdown: the time for it was spent"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				usePodsThatUseAllTheirGrace(n)
				n.opts.Prepare = func(ctx context.Context) error { return waitOrCancelled(ctx, test.takes) }
				var listed []time.Time
				n.opts.Pods = shutdown.PodsFunc(func() []*v1.Pod {
					listed = append(listed, time.Now())
					return n.currentPods()
				})
				n.run()
				require.Equal(t, []time.Duration{34500 * time.Millisecond}, n.host.Wishes())
				began := time.Now()
				n.host.Announce(shutdown.Event{Deadline: began.Add(test.limit)})
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

// Prepare is called once in a shutdown, and again by an agent that takes the shutdown up.
func TestPrepareIsCalledOnce(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		usePodsThatUseAllTheirGrace(n)
		calls := 0
		n.opts.Prepare = func(context.Context) error { calls++; return nil }
		n.runOnBoot(one)
		began := time.Now()
		for _, end := range []time.Duration{time.Minute, 25 * time.Second} {
			n.host.Announce(shutdown.Event{Deadline: began.Add(end)})
			n.advance(time.Second)
		}
		require.Equal(t, 1, calls)
		n.crash()
		n.runOnBoot(one)
		n.advance(time.Second)
		require.Equal(t, 2, calls)
	})
}

// An event that leaves less time ends Prepare, which is called again, until it has returned or its
// time is over.
func TestPrepareIsOvertaken(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		calls := 0
		n.opts.Prepare = func(ctx context.Context) error { calls++; return waitOrCancelled(ctx, time.Second) }
		n.run()
		began := time.Now()
		for i, end := range []time.Duration{40 * time.Second, 35 * time.Second, 30 * time.Second} {
			n.host.Announce(shutdown.Event{Deadline: began.Add(end)})
			n.advance(500 * time.Millisecond)
			require.Equal(t, i+1, calls)
		}
		n.advance(time.Minute)
		require.Equal(t, 3, calls)
		require.Equal(t, 2*time.Second, n.killedAfter("web", began))
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds())
		require.Empty(t, n.lastReport().Errors)
	})
}

// A cancellation ends Prepare, which is no failure, and no pod is killed.
func TestPrepareIsCancelled(t *testing.T) {
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

// A shutdown is on record before Prepare has returned: the next agent knows of it.
func TestShutdownIsOnRecordInPrepare(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		n.opts.Prepare = func(ctx context.Context) error { return waitOrCancelled(ctx, time.Minute) }
		n.runOnBoot(one)
		n.announce()
		n.advance(50 * time.Millisecond)
		_, found, err := shutdown.StoredReport(n.opts.StateDir)
		require.NoError(t, err)
		require.True(t, found)
	})
}

// An agent that goes on late calls Prepare again, and gives the pods all the time that is left then.
func TestPrepareOfALateSuccessor(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.opts.Prepare = func(context.Context) error { return nil }
		n.opts.Hold = func(ctx context.Context) error { <-ctx.Done(); return nil }
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(50 * time.Second)})
		n.advance(time.Second)
		n.crash()
		n.advance(29 * time.Second)
		n.runOnBoot(one)
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 5, "etcd": 10}, n.grantedSeconds())
	})
}
