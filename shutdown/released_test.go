//go:build go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The host was let go, and another announcement follows that names no deadline. The one that is known
// counts for the drain that follows.
func TestAnnouncedAfterTheReleaseWithoutADeadline(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"late": {Takes: time.Hour}}
		n.run()
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "cloud", Deadline: began.Add(time.Minute)}))
		n.advance(50 * time.Second)
		require.Zero(t, n.host.Held())
		n.setPods(shutdowntest.Pod("late", topPriority, 60))
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "UPS"}))
		n.advance(time.Hour)
		require.LessOrEqual(t, n.grantedSeconds()["late"], int64(10))
		require.LessOrEqual(t, n.releasedAfter(began), time.Minute)
	})
}
