//go:build go1.25

package shutdown_test

import (
	"context"
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

// The host is being let go, and a notice comes that leaves more time. The drain that follows uses it, but
// the lock is let go when the host's own time is over.
func TestAnnouncedDuringTheReleaseWithMoreTime(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.opts.OnRelease = func(ctx context.Context) { <-ctx.Done() }
		n.run()
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(10 * time.Second)})
		n.advance(9600 * time.Millisecond)
		require.Equal(t, 1, n.host.Held())
		n.setPods(shutdowntest.Pod("late", topPriority, 60))
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "cloud", Deadline: began.Add(time.Minute)}))
		n.advance(time.Hour)
		require.LessOrEqual(t, n.releasedAfter(began), 10*time.Second)
		require.Greater(t, n.grantedSeconds()["late"], int64(10))
	})
}
