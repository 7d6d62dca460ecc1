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

// A drain first refuses pods, then publishes the node state, and only then kills, even if publishing takes a
// second.
func TestPodsAreKilledAfterTheNodeStateIsPublished(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{PublishTakes: time.Second}
		n.opts.Reporter = reporter
		n.run()
		began := time.Now()
		n.announce()
		require.False(t, n.m.Admit(nil).Admit)
		require.Empty(t, n.killer.Kills(), "not before the node's state is known")
		n.advance(time.Second)
		require.Equal(t, time.Second, n.killedAfter("web", began))
		published := announcements(t, reporter)
		require.Len(t, published, 1)
		require.Equal(t, shutdown.NodeState{ShuttingDown: true, Since: began, Policy: shutdown.PolicySetTerminal}, published[0].State)
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds(), "publishing and final statuses take nothing from the pods")
	})
}

// The pods of each bucket are marked not ready before they are killed, except pods with a deletion
// timestamp, which services leave out anyway.
func TestPodsAreMarkedNotReadyBeforeTheirKill(t *testing.T) {
	pods := list(shutdowntest.Pod("web", 0, 60), deletedPod("gone"), shutdowntest.Pod("etcd", topPriority, 60))
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		reporter := &shutdowntest.Reporter{MarkTakes: 200 * time.Millisecond}
		n.opts.Reporter = reporter
		n.opts.Plan.StatusesTimeout = 2 * time.Second
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		marked := reporter.Marked()
		require.Len(t, marked, 2)
		require.Equal(t, "web", marked[0].Pod)
		require.Equal(t, "etcd", marked[1].Pod)
		for i, name := range []string{"web", "etcd"} {
			require.False(t, marked[i].Ready)
			require.Equal(t, marked[i].At.Sub(began), n.killedAfter(name, began), "right before the kill")
		}
		require.Equal(t, map[string]int64{"web": 22, "gone": 5, "etcd": 13}, n.grantedSeconds(), "the pods do not pay for it")
		require.Empty(t, n.lastReport().Errors)
	})
}

// Readiness marks hang. They delay the kill of each bucket by the second that is reserved for them, and no
// more.
func TestSlowReadinessMarksDelayABucketByTheirReserve(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{MarkTakes: time.Hour}
		n.opts.Reporter = reporter
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, time.Second, n.killedAfter("web", began))
		require.Equal(t, 2*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 2*time.Second, n.releasedAfter(began))
		require.Len(t, reporter.Flushed(), 2)
		require.Contains(t, n.lastReport().Errors[0], "failed to mark 1 pods not ready")
	})
}

// The API server is down. The first kill waits 2 s for the node state. After that no mark is sent, because
// the server has accepted nothing. Marks and final statuses take nothing from the pods, which get the second
// reserved for marks too.
func TestADeadAPIServerTakesNoTimeFromThePods(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.opts.Reporter = &shutdowntest.Reporter{PublishTakes: time.Hour, MarkTakes: time.Hour, FlushTakes: time.Hour}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 2*time.Second, n.killedAfter("web", began), "the publishing, and no mark is waited for")
		require.Equal(t, 24*time.Second, n.killedAfter("etcd", began), "until the end of its bucket")
		require.Equal(t, map[string]int64{"web": 21, "etcd": 11}, n.grantedSeconds())
		require.Equal(t, 37500*time.Millisecond, n.releasedAfter(began), "2.5 s after the last pod")
	})
}

// hangingMarker is a cluster that takes an hour to mark the pod "spared" as not ready.
type hangingMarker struct{ *cluster }

// MarkNotReady succeeds at once, except for the pod "spared".
func (hangingMarker) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	if pod.Name != "spared" {
		return nil
	}
	return waitOrCancelled(ctx, time.Hour)
}

// RestoreReadiness succeeds at once.
func (hangingMarker) RestoreReadiness(context.Context, *v1.Pod) error { return nil }
