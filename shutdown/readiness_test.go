package shutdown_test

import (
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
		require.Equal(t, map[string]int64{"web": 18, "gone": 5, "etcd": 9}, n.granted(), "the reserve pays for it")
		require.Empty(t, n.report().Errors)
	})
}

// Marking and flushing together never cost a bucket more than its reserve: with an
// API server that is dead the pods have all of their time, and no more.
func TestMarkingCostsTheReserve(t *testing.T) {
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
				require.Equal(t, 20*time.Second+took, n.startedAt("etcd", began))
				require.Equal(t, map[string]int64{"web": 18, "etcd": 8}, n.granted())
				require.Equal(t, 31500*time.Millisecond, n.releasedAfter(began))
			})
		})
	}
}

// Pods that end at once are not made to wait for a dead API server for longer than
// the reserve either.
func TestMarkingWhenPodsEndAtOnce(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		n.opts.Reporter = &shutdowntest.Reporter{MarkTakes: time.Hour}
		n.run()
		began := time.Now()
		n.announce()
		n.pass(time.Minute)
		require.Equal(t, 500*time.Millisecond, n.releasedAfter(began))
		require.Contains(t, n.report().Errors[0], "failed to mark 1 pods not ready")
	})
}

// Without a reserve nobody is marked.
func TestMarkingNeedsAReserve(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter, n.opts.Plan.FlushReserve = reporter, -1
		n.run()
		n.announce()
		require.Empty(t, reporter.Marked())
		require.Len(t, n.killer.Kills(), 1)
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
