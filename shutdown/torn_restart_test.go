//go:build go1.25

package shutdown_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
)

// A state file with an unfinished shutdown is cut off at any length. The next agent neither kills
// nor refuses a pod because of it. A pending shutdown counts as a new one, whose report says what is
// wrong with the file.
func TestRecordThatIsTornAnywhere(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		path := filepath.Join(n.opts.StateDir, progressFile)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		n.host.SetPending(nil)
		for length := range whole {
			require.NoError(t, os.WriteFile(path, whole[:length], 0o600))
			m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
			require.NoError(t, err)
			require.True(t, m.Admit(nil).Admit, "%d of %d bytes", length, len(whole))
			if length%25 > 0 { // what Run finds is the same
				continue
			}
			n.start(m)
			<-m.Ready()
			n.advance(time.Second)
			require.Empty(t, n.killer.Kills())
			require.True(t, m.Admit(nil).Admit)
			_, ok := m.LastReport()
			require.False(t, ok)
			n.end()
		}
		n.host.SetPending(&shutdown.Event{Kind: shutdown.KindReboot})
		n.runOnBoot(boot)
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds(), "all of its time")
		n.advance(time.Minute)
		require.Len(t, n.lastReport().Pods, 2)
		require.Contains(t, n.lastReport().Errors[0], path)
	})
}

// An agent is killed right before it renames a new state file. The next agent uses the old file
// and removes the new one.
func TestRecordThatWasNotPutInItsPlace(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		dir := n.opts.StateDir
		next := filepath.Join(dir, ".tmp-"+progressFile+"123")
		require.NoError(t, os.WriteFile(next, []byte(`{"version":2,"bootID":"one","done":2`), 0o600))
		n.setPods(n.pods[1])
		n.runOnBoot(boot)
		require.Equal(t, map[string]int64{"etcd": 8}, n.grantedSeconds(), "what is left of its grace period")
		require.NoFileExists(t, next)
	})
}
