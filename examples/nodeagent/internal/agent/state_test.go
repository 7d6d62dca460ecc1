package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An agent does not show the stored report of a former agent. Both bubbles begin at the
// same time, so that the report is newer than the second agent, as if the clock had been
// set back.
func TestStoredReportIsNotShownAgain(t *testing.T) {
	dir := t.TempDir()
	// The first shutdown begins at once, because none on record can begin later than now.
	for i, script := range []string{"exits 1s after TERM", "exits 2s after TERM"} {
		after := time.Duration(i) * time.Second
		inBubble(t, func(t *testing.T, b *testbed) {
			b.opts.StateDir = dir
			b.addPod("web", 0, script)
			b.run()
			b.advance(after)
			require.NotContains(t, b.output(), "The shutdown took")
			require.NoError(t, b.terminate())
			require.Contains(t, b.output(), "1 of 1 pod stopped in time.")
		})
	}
}
