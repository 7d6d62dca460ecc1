package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Pods are not ready before they are stopped, bucket by bucket. Those that were
// deleted are not ready as it is.
func TestMarkNotReadyThenKill(t *testing.T) {
	pods := list(shutdowntest.Pod("web", 0, 60), deleted("gone"), shutdowntest.Pod("etcd", topPriority, 60))
	bubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		reporter := &shutdowntest.Reporter{MarkTakes: 200 * time.Millisecond}
		n.opts.Reporter = reporter
		n.opts.Plan.FlushReserve = 2 * time.Second
		n.run()
		began := time.Now()
		n.announce()
		n.pass(time.Minute)
		marked := reporter.Marked()
		require.Len(t, marked, 2)
		require.Equal(t, []string{"web"}, marked[0].Pods)
		require.Equal(t, []string{"etcd"}, marked[1].Pods)
		for i, name := range []string{"web", "etcd"} {
			require.False(t, marked[i].Ready)
			require.Equal(t, marked[i].At.Sub(began), n.startedAt(name, began), "right before the kill")
		}
		require.Equal(t, map[string]int64{"web": 20, "gone": 5, "etcd": 10}, n.granted(), "the pods do not pay for it")
		require.Empty(t, n.report().Errors)
	})
}

// Marking and flushing cost a bucket what is kept for each and no more, and its pods
// nothing: with an API server that is dead they have all of their time.
func TestADeadServerTakesNothingFromThePods(t *testing.T) {
	for _, test := range []struct {
		name        string
		mark, flush time.Duration
	}{
		{"dead", time.Hour, time.Hour},
		{"slow to mark", 900 * time.Millisecond, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.opts.Reporter = &shutdowntest.Reporter{MarkTakes: test.mark, FlushTakes: test.flush}
				n.opts.Plan.FlushReserve = 2 * time.Second
				n.run()
				began := time.Now()
				n.announce()
				n.pass(time.Minute)
				took := min(test.mark, time.Second)
				require.Equal(t, took, n.startedAt("web", began))
				require.Equal(t, 22*time.Second+2*took, n.startedAt("etcd", began))
				require.Equal(t, map[string]int64{"web": 20, "etcd": 10}, n.granted())
				require.Equal(t, 34*time.Second+2*took, n.releasedAfter(began))
			})
		})
	}
}

// Where pods end at once, a dead API server costs each bucket its reserve and no
// more, and the host nothing beside that.
func TestADeadServerWhenPodsEndAtOnce(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{MarkTakes: time.Hour, FlushTakes: time.Hour}
		n.opts.Reporter = reporter
		n.run()
		began := time.Now()
		n.announce()
		n.pass(time.Minute)
		require.Equal(t, time.Second, n.startedAt("web", began))
		require.Equal(t, 3*time.Second, n.startedAt("etcd", began))
		require.Equal(t, 4*time.Second, n.releasedAfter(began))
		require.Len(t, reporter.Flushed(), 2)
		report := n.report()
		require.Len(t, report.Errors, 4)
		require.Contains(t, report.Errors[0], "failed to mark 1 pods not ready")
		require.Contains(t, report.Errors[1], "failed to flush the final statuses of 1 pods")
		for _, pod := range report.Pods {
			require.True(t, pod.Unflushed, pod.Name)
		}
	})
}

// What is left of the reserve is for those who had bad luck before.
func TestAServerThatComesBack(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{FlushErr: func(call int) error {
			if call == 0 {
				return errors.New("connection refused")
			}
			return nil
		}}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		flushed := reporter.Flushed()
		require.Len(t, flushed, 3)
		require.Equal(t, []string{"web"}, flushed[2].Pods)
		for _, pod := range n.report().Pods {
			require.False(t, pod.Unflushed, pod.Name)
		}
	})
}

// Pods that outlive their bucket are flushed in the end, in a reserve of their own.
func TestStragglersAreFlushed(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 20), shutdowntest.Pod("late", 0, 20)), func(t *testing.T, n *node) {
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
		n.pass(time.Minute)
		flushed := reporter.Flushed()
		require.Len(t, flushed, 2)
		require.Equal(t, []string{"web"}, flushed[0].Pods)
		require.NoError(t, flushed[0].Err)
		require.Equal(t, []string{"late"}, flushed[1].Pods)
		require.NoError(t, flushed[1].Err)
		require.Equal(t, 22700*time.Millisecond, n.releasedAfter(began))
	})
}

// Without time for it nobody is marked, and the flush has what the pods leave.
func TestNoTimeForMarking(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{FlushTakes: 5 * time.Second}
		n.opts.Reporter, n.opts.Plan.ReadinessReserve, n.opts.Plan.FlushReserve = reporter, -1, -1
		n.run()
		n.announce()
		require.Empty(t, reporter.Marked())
		require.Len(t, n.killer.Kills(), 1)
		n.pass(time.Minute)
		require.NoError(t, reporter.Flushed()[0].Err)
	})
}

// A shutdown that is cancelled while its pods are marked takes that back.
func TestSparedPodsAreReadyAgain(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{MarkTakes: 300 * time.Millisecond, MarkErr: func(call int) error {
			if call == 1 {
				return errors.New("no")
			}
			return nil
		}}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		synctest.Wait()
		n.pass(time.Minute)
		require.Empty(t, n.killer.Kills())
		marked := reporter.Marked()
		require.Len(t, marked, 2)
		require.Error(t, marked[0].Err, "its context has ended")
		require.Equal(t, []string{"web"}, marked[1].Pods)
		require.True(t, marked[1].Ready)
		require.Equal(t, []string{"failed to mark 1 spared pods ready: no"}, n.report().Errors)
	})
}

// One that is cancelled while its pods are killed spares those that it has not
// signalled: their turn had not come.
func TestSignalledPodsAreNotSpared(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 3 * time.Second}
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		n.pass(time.Minute)
		require.Len(t, reporter.Marked(), 1, "of those that end")
		require.Equal(t, []string{"web"}, reporter.Flushed()[0].Pods)
	})
}

// Of a bucket that a cancellation overtakes, each pod is either killed or spared.
func TestOvertakenKillsAreSpared(t *testing.T) {
	var pods []*v1.Pod
	for i := range 100 {
		pods = append(pods, shutdowntest.Pod(fmt.Sprintf("pod-%02d", i), 0, 60))
	}
	for range 20 {
		bubble(t, pods, func(t *testing.T, n *node) {
			reporter := &shutdowntest.Reporter{}
			n.opts.Reporter = reporter
			n.opts.Source = nil
			var cancel sync.Once
			n.killer.OnKill = func(*v1.Pod) {
				cancel.Do(func() { require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true})) })
			}
			n.run()
			require.NoError(t, n.m.Trigger(shutdown.Event{}))
			n.pass(time.Minute)
			var all []string
			for _, kill := range n.killer.Kills() {
				all = append(all, kill.Pod.Name)
			}
			for _, marked := range reporter.Marked()[1:] {
				require.True(t, marked.Ready)
				all = append(all, marked.Pods...)
			}
			require.Len(t, all, len(pods))
			slices.Sort(all)
			require.Len(t, slices.Compact(all), len(pods), "none is both")
		})
	}
}
