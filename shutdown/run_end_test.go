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

// Run returns no error if the session is lost while Run ends, as happens when the machine stops
// the bus.
func TestHostIsLostAsRunEnds(t *testing.T) {
	for range 200 { // which of the two comes first depends on chance
		inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
			n.run()
			n.host.Lose()
			n.stop()
			require.NoError(t, <-n.ended)
			n.stop = nil
		})
	}
}

// Run ends while the pods of a cancelled shutdown are still ending. The report says that this
// shutdown is over.
func TestRunEndsWithinACancelledShutdown(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
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

// Run waits for pods that hang, and then passes the report on; it does not name that call as one that
// hangs.
func TestRunEndsWithAReportOfPodsThatHang(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		reports := 0
		n.opts.OnReport = func(context.Context, shutdown.Report) { <-time.After(time.Millisecond); reports++ }
		n.run()
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(time.Minute)})
		n.advance(time.Second)
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(30 * time.Second)}) // another drain
		n.advance(3 * time.Minute)
		n.stop()
		stopped := time.Now()
		require.ErrorContains(t, <-n.ended, "calls that have not returned: Options.Killer for pod default/etcd, Options.Killer for pod default/web")
		require.LessOrEqual(t, time.Since(stopped), 10*time.Second)
		require.Equal(t, 1, reports)
		n.stop = nil
		n.killer.Release()
	})
}

// The end of Run interrupts a shutdown. Its report can be read before its pods have ended.
func TestReportOfAnInterruptedShutdown(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		n.run()
		n.announce()
		n.advance(time.Second)
		n.stop()
		n.advance(time.Second)
		require.Len(t, n.lastReport().Pods, 1)
		require.Zero(t, n.lastReport().Ended)
	})
}

// A lock that the host grants only after Run was told to end is closed.
func TestInhibitAfterRun(t *testing.T) {
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
