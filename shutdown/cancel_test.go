//go:build go1.25

package shutdown_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A shutdown is cancelled after 3 s, while web is terminating. etcd, in the next bucket, is not killed, and is admitted at once. web
// is admitted again when it has ended, after its 10 s.
func TestACancellationTakesEffectDuringTheKills(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		web, etcd := n.pods[0], n.pods[1]
		n.killer.Default = shutdowntest.Behaviour{Takes: 10 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(3 * time.Second)
		n.host.Cancel()
		synctest.Wait()
		require.NoError(t, n.m.ShutdownStatus(), "the node is no longer shutting down")
		require.True(t, n.admits(etcd))
		require.False(t, n.admits(web), "it is still terminating")

		n.advance(time.Minute)
		require.Equal(t, 10*time.Second, n.endedAfter("web", began), "the cancellation does not shorten its grace period")
		require.True(t, n.admits(web))
		require.True(t, n.lastReport().Cancelled)
		require.Equal(t, []string{"web"}, names(n.lastReport()), "etcd was not killed")
	})
}

// When a shutdown is cancelled while web is terminating, a new lock replaces the old one, the node's state is reverted, and an
// event says so. The end of the old drain does not release the new lock.
func TestACancellationTakesANewLockAndRevertsTheNodeState(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.killer.Default = shutdowntest.Behaviour{Takes: 10 * time.Second}
		n.run()
		callsBefore := len(n.host.Calls())
		n.announce()
		n.advance(3 * time.Second)
		n.host.Cancel()
		synctest.Wait()
		require.Equal(t, []string{"delay", "inhibit", "release"}, n.host.Calls()[callsBefore:], "the new lock is taken before the old one is released")
		require.Equal(t, []shutdown.NodeState{{ShuttingDown: true}, {}}, announcements(t, reporter))
		require.Equal(t, []string{
			"Normal Shutdown Shutdown manager detected shutdown event",
			"Normal Shutdown Shutdown manager detected shutdown cancellation",
		}, n.events.all())

		n.advance(time.Minute)
		require.Equal(t, 1, n.host.Held(), "the new lock")
	})
}

// Each of 100 shutdowns begins to kill a pod that never ends, and is cancelled. It leaves one goroutine, that of the kill,
// and no other: in the end there are 100 more goroutines and not several hundred.
func TestCancelledShutdownsLeaveOnlyTheirKills(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
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
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
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
