package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The final status of a pod that a cancelled shutdown has ended is told after the next boot,
// also if another shutdown has begun before the API server came back.
func TestStatusesOfACancelledShutdownSurviveTheNext(t *testing.T) {
	dir := t.TempDir()
	bubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		c := &cluster{away: true}
		n.opts.StateDir, n.opts.Reporter = dir, c
		one := &boot{id: "one", began: time.Now()}
		n.runOn(one)
		n.announce()
		n.pass(time.Second)
		n.host.Cancel()
		n.pass(time.Minute)
		n.set(shutdowntest.Pod("api", 0, 60))
		n.announce()
		n.pass(time.Second)
		n.crash()

		n.host.SetPending(nil)
		c.set(false)
		n.runOn(&boot{id: "two", began: time.Now()})
		n.pass(time.Second)
		require.Equal(t, []string{"api", "web"}, c.names())
	})
}

// Of pods that a later shutdown has signalled too, and of those that were acknowledged
// meanwhile, that one's word counts. A drain is kept only as long as it has something to tell.
func TestAcknowledgedDrainsAreNotKept(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.run()
		for range 3 {
			n.announce()
			n.pass(time.Second)
			n.host.Cancel()
			n.pass(time.Minute)
		}
		require.Equal(t, 3, n.m.UnacknowledgedDrains())
		c.set(false)
		n.pass(time.Minute)
		n.announce()
		n.pass(time.Minute)
		require.Zero(t, n.m.UnacknowledgedDrains())
		require.Equal(t, []string{"web"}, c.names())
	})
}
