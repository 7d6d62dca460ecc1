package shutdown_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A host that is lost while the agent ends, as the bus is when the machine stops, is no failure
// of Run.
func TestHostIsLostAsRunEnds(t *testing.T) {
	for range 200 { // which of the two comes first is chance
		inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
			n.run()
			n.host.Lose()
			n.stop()
			require.NoError(t, <-n.ended)
			n.stop = nil
		})
	}
}
