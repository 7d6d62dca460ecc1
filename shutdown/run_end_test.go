//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
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
