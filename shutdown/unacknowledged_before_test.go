//go:build unix

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The final status of a pod that a cancelled shutdown has ended is told after the next boot,
// also if another shutdown has begun before the API server came back.
func TestStatusesOfACancelledShutdownSurviveTheNext(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
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

// A pod that ends when the drain which has overtaken its own has given it up is told by the next
// agent of the same boot.
func TestStatusOfAnOvertakenDrainIsStored(t *testing.T) {
	for name, end := range map[string]func(*node){"of an agent that ends": (*node).end, "of one that is killed": (*node).crash} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node, one *boot) {
				c := &cluster{away: true}
				n.opts.Reporter = c
				n.killer.Default = shutdowntest.Behaviour{Hangs: true}
				n.runOn(one)
				n.announce()
				n.pass(3 * time.Second)
				n.host.Announce(shutdown.Event{Deadline: time.Now().Add(10 * time.Second)})
				n.pass(15 * time.Second)
				require.True(t, n.report().Pods[0].Ended.IsZero() || n.report().Pods[0].Error != "", "it is given up")
				n.killer.Release()
				n.pass(time.Second)
				end(n)

				n.set()
				n.host.SetPending(nil)
				c.set(false)
				n.runOn(one)
				n.pass(2 * time.Second)
				require.Equal(t, []string{"web"}, c.names())
			})
		})
	}
}

// What is acknowledged after the end of a shutdown is not told again: neither by the agent that
// follows one which is killed then, nor what that one has carried over itself.
func TestLateAcknowledgementIsStored(t *testing.T) {
	static := staticPod()
	inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 5), static), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.runOn(one)
		n.announce()
		n.pass(time.Minute)
		n.host.Cancel()
		n.pass(time.Second)
		n.crash()
		n.set(shutdowntest.Pod("api", 0, 5))
		n.runOn(one) // with a shutdown of its own
		n.announce()
		n.pass(time.Minute)
		n.host.Cancel()
		n.pass(time.Second)
		require.Empty(t, c.names())
		c.set(false)
		n.pass(5 * time.Second)
		require.Equal(t, []string{"api", "static", "web"}, c.names())
		n.crash()

		clear(c.final)
		n.runOn(one)
		n.pass(5 * time.Second)
		require.Empty(t, c.names())
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
