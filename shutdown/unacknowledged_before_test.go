//go:build unix && go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The final status of a pod that a cancelled shutdown has ended is sent after the next boot, even
// if another shutdown has begun before the API server came back.
func TestStatusesOfACancelledShutdownSurviveTheNext(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Minute)
		n.setPods(shutdowntest.Pod("api", 0, 60))
		n.announce()
		n.advance(time.Second)
		n.crash()

		n.host.SetPending(nil)
		c.setAway(false)
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		n.advance(time.Second)
		require.Equal(t, []string{"api", "web"}, c.flushedPods())
	})
}

// A pod ends after its own drain was overtaken by another one, which has given the pod up. The
// next agent of the same boot sends the final status.
func TestStatusOfAnOvertakenDrainIsStored(t *testing.T) {
	for name, end := range map[string]func(*node){"of an agent that ends": (*node).end, "of one that is killed": (*node).crash} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node, one *boot) {
				c := &cluster{away: true}
				n.opts.Reporter = c
				n.killer.Default = shutdowntest.Behaviour{Hangs: true}
				n.runOnBoot(one)
				n.announce()
				n.advance(3 * time.Second)
				n.host.Announce(shutdown.Event{Deadline: time.Now().Add(10 * time.Second)})
				n.advance(15 * time.Second)
				require.True(t, n.lastReport().Pods[0].Ended.IsZero() || n.lastReport().Pods[0].Error != "", "it is given up")
				n.killer.Release()
				n.advance(time.Second)
				end(n)

				n.setPods()
				n.host.SetPending(nil)
				c.setAway(false)
				n.runOnBoot(one)
				n.advance(2 * time.Second)
				require.Equal(t, []string{"web"}, c.flushedPods())
			})
		})
	}
}

// A final status that is acknowledged after the end of a shutdown is not sent again, even if the
// agent is killed right after that. This holds too for statuses that the agent has taken over from
// an earlier one.
func TestLateAcknowledgementIsStored(t *testing.T) {
	static := staticPod()
	inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 5), static), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		n.host.Cancel()
		n.advance(time.Second)
		n.crash()
		n.setPods(shutdowntest.Pod("api", 0, 5))
		n.runOnBoot(one) // with a shutdown of its own
		n.announce()
		n.advance(time.Minute)
		n.host.Cancel()
		n.advance(time.Second)
		require.Empty(t, c.flushedPods())
		c.setAway(false)
		n.advance(5 * time.Second)
		require.Equal(t, []string{"api", "static", "web"}, c.flushedPods())
		n.crash()

		clear(c.final)
		n.runOnBoot(one)
		n.advance(5 * time.Second)
		require.Empty(t, c.flushedPods())
	})
}

// The final status of a pod that several shutdowns have killed is owed once, until it is
// acknowledged.
func TestOneStatusOfAPodThatSeveralShutdownsKill(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.run()
		for range 3 {
			n.announce()
			n.advance(time.Second)
			n.host.Cancel()
			n.advance(time.Minute)
		}
		require.Equal(t, 1, n.m.UnacknowledgedStatuses())
		c.setAway(false)
		n.advance(time.Minute)
		n.announce()
		n.advance(time.Minute)
		require.Zero(t, n.m.UnacknowledgedStatuses())
		require.Equal(t, []string{"web"}, c.flushedPods())
	})
}
