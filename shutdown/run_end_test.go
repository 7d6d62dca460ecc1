package shutdown_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
