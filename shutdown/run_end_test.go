//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// If Run ends during a drain, its error names the pods that have not ended, also those that were not killed
// yet. OnReport gets a report without an end, and the lock is released.
func TestTheEndOfRunInterruptsADrain(t *testing.T) {
	inBubble(t, append(twoPods(), shutdowntest.Pod("batch", -5, 60)), func(t *testing.T, n *node) {
		var reports []shutdown.Report
		n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports = append(reports, r) }
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true}}
		n.run()
		n.announce()
		n.advance(time.Second)
		n.stop()
		n.stop = nil
		err := <-n.ended
		require.ErrorIs(t, err, shutdown.ErrInterrupted)
		require.ErrorContains(t, err, "pod default/web: ")
		require.ErrorContains(t, err, "pod default/etcd: not killed")
		require.NotContains(t, err.Error(), "batch", "it has ended")
		require.Len(t, n.killer.Kills(), 2)
		require.Len(t, reports, 1)
		require.Zero(t, reports[0].Ended)
		require.Len(t, reports[0].Pods, 2)
		require.Equal(t, reports[0].Origin, n.lastReport().Origin)
		require.Zero(t, n.host.Held())
	})
}

// Run returns nil if the session is lost while Run ends, which happens when the machine stops the bus.
func TestASessionThatIsLostAtTheEndOfRunIsNoError(t *testing.T) {
	for range 200 { // which of the two comes first depends on chance
		inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(_ *testing.T, n *node) {
			n.run()
			n.host.Lose()
			n.end()
		})
	}
}

// Run ends while the pods of a cancelled shutdown are still ending. The report has the end of the shutdown.
func TestTheEndOfRunAfterACancellation(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, IgnoresContext: true}
		n.run()
		n.announce()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Second)
		n.end()
		require.True(t, n.lastReport().Cancelled)
		require.NotZero(t, n.lastReport().Ended)
	})
}

// A lock that the host grants after the context of Run has ended is closed.
func TestALockGrantedAfterTheEndOfRunIsClosed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.host.InhibitTakes = 3 * time.Second
		m, err := shutdown.NewManager(n.opts)
		require.NoError(t, err)
		n.start(m)
		synctest.Wait()
		n.end()
		require.Contains(t, n.host.Calls(), "release")
	})
}
