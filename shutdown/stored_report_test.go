//go:build go1.25

package shutdown_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

func TestStoredReportOfNothing(t *testing.T) {
	_, found, err := shutdown.StoredReport(t.TempDir())
	require.NoError(t, err)
	require.False(t, found)
}

func TestStoredReportOfAFileThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "graceful_node_shutdown_progress")
	require.NoError(t, os.WriteFile(file, []byte(`{"version": 99}`), 0o600))
	_, found, err := shutdown.StoredReport(dir)
	require.ErrorContains(t, err, file)
	require.False(t, found)
}

// The report is there from the first kill on, for whoever asks while the drain goes on.
func TestStoredReportIsThatOfTheManager(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		dir := t.TempDir()
		n.opts.StateDir = dir
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 5 * time.Second}}
		n.run()
		n.host.Announce(shutdown.Event{Kind: shutdown.KindReboot, Origin: "logind"})
		n.advance(time.Second)
		report, found, err := shutdown.StoredReport(dir)
		require.NoError(t, err)
		require.True(t, found)
		require.True(t, report.Ended.IsZero())
		require.Len(t, report.Pods, 1)

		n.advance(time.Minute)
		report, found, err = shutdown.StoredReport(dir)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, shutdown.KindReboot, report.Kind)
		require.Equal(t, "Graceful", report.Pods[0].Outcome)
		require.True(t, n.lastReport().Ended.Equal(report.Ended))
	})
}
