package agent_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A report that an earlier agent has stored is no shutdown of this one, although the
// clock of a bubble begins anew: as if it had been set back.
func TestStoredReportIsNotShownAgain(t *testing.T) {
	dir := t.TempDir()
	for _, script := range []string{"exits 1s after TERM", "exits 2s after TERM"} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.opts.StateDir = dir
			b.pod("web", 0, script)
			b.run()
			b.pass(time.Second)
			require.NotContains(t, b.output(), "The shutdown took")
			b.signals <- syscall.SIGTERM
			require.NoError(t, b.end())
			require.Contains(t, b.output(), "1 of 1 pod stopped in time.")
		})
	}
}
