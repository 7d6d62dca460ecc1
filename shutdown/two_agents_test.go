//go:build unix && go1.25

package shutdown_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A second agent starts with the same state folder. It holds the inhibitor lock at once, and refuses pods while it waits ten
// seconds for the folder. Then it works without the folder, and its report says so. A third agent gets the folder
// when the first one ends.
func TestTheSecondAgentWorksWithoutTheStateFolder(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		n.runOnBoot(thisBoot)
		other := n.startOtherAgent(thisBoot)
		n.advance(200 * time.Millisecond)
		require.Equal(t, 1, other.host.Held(), "the inhibitor lock")
		require.False(t, other.admitsNewPods())
		<-other.m.Ready()
		require.True(t, other.admitsNewPods())
		other.announce()
		other.advance(3 * time.Second)
		require.Contains(t, other.lastReport().Errors[0], "another agent uses it")
		require.False(t, fileContains(filepath.Join(n.opts.StateDir, logFile), "shutdown"), "the second agent writes nothing")
		other.end()

		// A third agent starts, and then the first one ends.
		third := n.startOtherAgent(thisBoot)
		n.advance(time.Second)
		n.end()
		n.advance(100 * time.Millisecond)
		require.True(t, third.admitsNewPods())
		third.end()
	})
}
