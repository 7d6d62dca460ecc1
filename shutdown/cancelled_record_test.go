//go:build unix && go1.25

package shutdown_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The next agent does not resume a cancelled shutdown, even if signalled pods had not ended yet
// and the host cannot say what became of the shutdown.
func TestCancelledShutdownIsNotResumed(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.opts.Source = nil
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "test"}))
		n.advance(2 * time.Second)
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true}))
		synctest.Wait() // it is stored at once
		n.crash()
		m, err := shutdown.NewManagerOn(n.opts, one.sinceBoot)
		require.NoError(t, err)
		require.True(t, m.Admit(nil).Admit)
		n.start(m)
		n.advance(time.Minute)
		require.Empty(t, n.killer.Kills())
		report := n.lastReport()
		require.Equal(t, "test", report.Origin)
		require.True(t, report.Cancelled)
		require.NotZero(t, report.Ended)
	})
}

// A stored shutdown is over when the embedder cancels it with Trigger, even if the host cannot be
// asked.
func TestStoredShutdownIsCancelledByTheEmbedder(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
		require.NoError(t, err)
		n.start(m)
		synctest.Wait()
		require.False(t, m.Admit(nil).Admit)
		require.NoError(t, m.Trigger(shutdown.Event{Cancelled: true}))
		synctest.Wait()
		require.True(t, m.Admit(nil).Admit)
		require.True(t, n.lastReport().Cancelled)
		require.NotZero(t, n.lastReport().Ended)
		events := n.events.all()
		require.Contains(t, events[len(events)-1], "Shutdown manager detected shutdown cancellation")
	})
}
