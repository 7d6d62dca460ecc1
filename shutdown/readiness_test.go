package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The pods of each bucket are marked not ready before they are killed. Pods that were deleted are not
// marked, because they count as not ready already.
func TestMarkNotReadyThenKill(t *testing.T) {
	pods := list(shutdowntest.Pod("web", 0, 60), deletedPod("gone"), shutdowntest.Pod("etcd", topPriority, 60))
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		reporter := &shutdowntest.Reporter{MarkTakes: 200 * time.Millisecond}
		n.opts.Reporter = reporter
		n.opts.Plan.FlushReserve = 2 * time.Second
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
		require.Equal(t, map[string]int64{"web": 20, "gone": 5, "etcd": 10}, n.grantedSeconds(), "the pods do not pay for it")
		require.Empty(t, n.lastReport().Errors)
	})
}

// Marks and final statuses cost a bucket no more than their reserves, and its pods nothing: if
// the API server is down, the pods keep all of their time.
func TestADeadServerTakesNothingFromThePods(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.opts.Reporter = &shutdowntest.Reporter{PublishTakes: time.Hour, MarkTakes: time.Hour, FlushTakes: time.Hour}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 2*time.Second, n.killedAfter("web", began), "the publishing, and no mark is waited for")
		require.Equal(t, 24*time.Second, n.killedAfter("etcd", began), "until the end of its bucket")
		require.Equal(t, map[string]int64{"web": 20, "etcd": 10}, n.grantedSeconds())
		require.Equal(t, 35*time.Second, n.releasedAfter(began), "a second after the last pod: two were waited in vain for the first bucket")
	})
}

// A server that is slow with marks only costs each bucket the reserve for marks.
func TestMarksThatTakeTooLong(t *testing.T) {
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

// Each pod is killed when its own mark is acknowledged, without waiting for other marks.
func TestEachPodWaitsForItsOwnMark(t *testing.T) {
	var pods []*v1.Pod
	for i := range 30 {
		pods = append(pods, shutdowntest.Pod(fmt.Sprintf("pod-%02d", i), 0, 60))
	}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.opts.Reporter = &shutdowntest.Reporter{MarkTakes: 200 * time.Millisecond}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		started := map[time.Duration]int{}
		for _, kill := range n.killer.Kills() {
			started[kill.Started.Sub(began)]++
			require.EqualValues(t, 20, *kill.Request.GracePeriodSeconds)
		}
		require.Equal(t, map[time.Duration]int{200 * time.Millisecond: 10, 400 * time.Millisecond: 10, 600 * time.Millisecond: 10}, started)
	})
}

// Where pods end at once, a dead API server costs the publishing, two and a half seconds
// once and one reserve for each further bucket.
func TestADeadServerWhenPodsEndAtOnce(t *testing.T) {
	pods := list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("db", 1000, 60), shutdowntest.Pod("etcd", topPriority, 60))
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.opts.Config = config(0, 0, priorityPeriod(0, 20), priorityPeriod(1000, 10), priorityPeriod(topPriority, 10))
		n.opts.Reporter = &shutdowntest.Reporter{PublishTakes: time.Hour, MarkTakes: time.Hour, FlushTakes: time.Hour}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 2*time.Second, n.killedAfter("web", began))
		require.Equal(t, 4500*time.Millisecond, n.killedAfter("db", began))
		require.Equal(t, 5500*time.Millisecond, n.killedAfter("etcd", began))
		require.Equal(t, 6500*time.Millisecond, n.releasedAfter(began))
		report := n.lastReport()
		require.Len(t, report.Errors, 2)
		require.Contains(t, report.Errors[0], "failed to publish the node state")
		require.Contains(t, report.Errors[1], "failed to flush the final statuses of 3 pods")
		for _, pod := range report.Pods {
			require.True(t, pod.Unflushed, pod.Name)
		}
	})
}

// A mark that is refused for a moment is tried again.
func TestAServerThatComesBack(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{FlushErr: func(call int) error {
			if call < 3 {
				return errors.New("connection refused")
			}
			return nil
		}}
		n.opts.Reporter = reporter
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 700*time.Millisecond, n.killedAfter("etcd", began), "100, 200 and 400 ms later")
		for _, pod := range n.lastReport().Pods {
			require.False(t, pod.Unflushed, pod.Name)
		}
		require.Empty(t, n.lastReport().Errors)
	})
}

// Pods that outlive their bucket are flushed as they end.
func TestStragglersAreFlushed(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20), shutdowntest.Pod("late", 0, 20)), func(t *testing.T, n *node) {
		n.opts.Config = config(20*time.Second, 0)
		began := time.Now()
		n.opts.Killer = shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, _ shutdown.KillRequest) (shutdown.KillResult, error) {
			if pod.Name == "late" {
				<-time.After(22 * time.Second)
			}
			return shutdown.KillResult{}, nil
		})
		reporter := &shutdowntest.Reporter{FlushTakes: 700 * time.Millisecond}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.advance(time.Minute)
		flushed := reporter.Flushed()
		require.Len(t, flushed, 2)
		require.Equal(t, "web", flushed[0].Pod)
		require.NoError(t, flushed[0].Err)
		require.Equal(t, "late", flushed[1].Pod)
		require.NoError(t, flushed[1].Err)
		require.Equal(t, 22700*time.Millisecond, n.releasedAfter(began))
	})
}

// Without time for marks no pod is marked, and the flush gets the time that the pods leave.
func TestNoTimeForMarking(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{FlushTakes: 900 * time.Millisecond}
		n.opts.Reporter, n.opts.Plan.ReadinessReserve, n.opts.Plan.FlushReserve = reporter, -1, -1
		n.run()
		n.announce()
		require.Empty(t, reporter.Marked())
		require.Len(t, n.killer.Kills(), 1)
		n.advance(time.Minute)
		require.NoError(t, reporter.Flushed()[0].Err)
	})
}
