//go:build go1.25

package shutdown_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A shutdown is cancelled after 3 s, while web is terminating. etcd, in the next bucket, is not killed. web ends after its
// 10 s, is in the report, and is refused until it has ended. All other pods are admitted at once, the node's state is reverted,
// and a new lock replaces the old one.
func TestACancellationTakesEffectDuringTheKills(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", regularPriority, 20), shutdowntest.Pod("etcd", criticalPriority, 5)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.killer.Default = shutdowntest.Behaviour{Takes: 10 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(3 * time.Second)
		n.host.Cancel()
		synctest.Wait()

		require.True(t, n.m.Admit(pods[1]).Admit)
		require.False(t, n.m.Admit(pods[0]).Admit, "it is ending")
		require.NoError(t, n.m.ShutdownStatus())
		require.Equal(t, 1, n.host.Held())
		require.Equal(t, []string{"delay", "inhibit", "release"}, n.host.Calls()[4:], "after the start: the new lock is taken before the old one is released")
		published := announcements(t, reporter)
		require.Len(t, published, 2)
		require.Equal(t, shutdown.NodeState{ShuttingDown: true}, published[0])
		require.False(t, published[1].ShuttingDown)
		require.Equal(t, []string{
			"Normal Shutdown Shutdown manager detected shutdown event",
			"Normal Shutdown Shutdown manager detected shutdown cancellation",
		}, n.events.all())

		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 1, "etcd is not signalled")
		kill, _ := n.killer.Kill("web")
		require.Equal(t, 10*time.Second, kill.Ended.Sub(began), "web runs out its grace")
		require.Equal(t, "web", reporter.Flushed()[0].Final.Name)
		require.True(t, n.m.Admit(pods[0]).Admit, "it has ended, and the API server knows")
		require.Equal(t, 1, n.host.Held(), "the end of the old drain does not release the new lock")
		report := n.lastReport()
		require.True(t, report.Cancelled)
		require.Equal(t, map[string]string{"web": "Graceful"}, outcomes(report))
	})
}

// Each of 100 shutdowns begins to kill a pod that never ends, and is cancelled. It leaves one goroutine, that of the kill,
// and no other: in the end there are 100 more goroutines and not several hundred.
func TestCancelledShutdownsLeaveOnlyTheirKills(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.opts.Killer = n.killer
		n.run()
		const cycles = 100
		before := runtime.NumGoroutine()
		for i := range cycles {
			n.setPods(append(n.currentPods(), shutdowntest.Pod(fmt.Sprint("pod-", i), regularPriority, 5))...)
			require.NoError(t, n.m.Trigger(source.Event{}))
			n.advance(time.Second)
			require.NoError(t, n.m.Trigger(source.Event{Cancelled: true}))
			n.advance(time.Second)
		}
		require.Len(t, n.killer.Kills(), cycles)
		require.Less(t, runtime.NumGoroutine()-before, cycles+50, "one for each kill that is under way, and some to spare")
	})
}

// The host refuses the inhibitor lock, and so does not wait for the pods. If the host announces the shutdown, the report says
// that no lock is held. A shutdown that Trigger announces needs no lock.
func TestOnlyAShutdownOfTheHostReportsThatNoLockIsHeld(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.host.InhibitErr = errors.New("refused")
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, []string{"no inhibitor lock is held: the host may go on before the pods have ended"}, n.lastReport().Errors)
		n.host.Cancel()
		n.advance(time.Second)
		require.NoError(t, n.m.Trigger(source.Event{}))
		n.advance(time.Minute)
		require.Empty(t, n.lastReport().Errors)
	})
}
