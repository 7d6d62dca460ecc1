//go:build unix && go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// refusingCluster is a cluster that refuses the final status of one pod.
type refusingCluster struct {
	cluster

	refused string // the pod's name
}

func (c *refusingCluster) FlushPod(ctx context.Context, pod *v1.Pod) error {
	if pod.Name == c.refused {
		return errors.New("not this one")
	}
	return c.cluster.FlushPod(ctx, pod)
}

// A shutdown of an earlier boot without an end stays one of that boot, although the agents of the
// next boot store which final statuses are acknowledged. The second of these agents resumes
// nothing, and sends what the first could not.
func TestAgentsAfterAnUnfinishedShutdownOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, list(shutdowntest.Pod("ended", 0, 5), shutdowntest.Pod("hangs", 0, 5)), func(t *testing.T, n *node) {
		c := &refusingCluster{}
		c.setAway(true)
		n.opts.StateDir, n.opts.Reporter = dir, c
		n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true, Deaf: true}}
		n.runOnBoot(&boot{id: "one", began: time.Now().Add(-1000 * time.Hour)}) // so that its clock is far ahead of the next boot's
		n.announce()
		n.advance(5 * time.Second)
		n.crash()

		n.host.SetPending(nil)
		next := &boot{id: "two", began: time.Now()}
		c.setAway(false)
		c.refused = "hangs"
		n.runOnBoot(next)
		n.advance(time.Second)
		require.Equal(t, []string{"ended"}, c.flushedPods())
		n.crash()

		c.refused = ""
		n.opts.Source = nil // nobody can say that the shutdown does not go on
		n.runOnBoot(next)
		require.True(t, n.m.Admit(nil).Admit)
		require.Empty(t, n.killer.Kills())
		n.advance(time.Second)
		require.Equal(t, []string{"ended", "hangs"}, c.flushedPods(), "the pod has ended with its boot")
	})
}

// Final statuses of an earlier boot are not lost in a shutdown of this boot.
func TestStatusesOfAFormerBootSurviveAShutdown(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("hangs", 0, 5)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true, Deaf: true}}
		n.runOnBoot(one)
		n.announce()
		n.advance(5 * time.Second)
		n.crash()

		n.host.SetPending(nil)
		n.setPods()
		next := &boot{id: "two", began: time.Now()}
		n.runOnBoot(next)
		require.NoError(t, n.m.Trigger(shutdown.Event{}))
		n.advance(time.Minute)
		n.crash()

		c.setAway(false)
		n.runOnBoot(next)
		n.advance(2 * time.Second)
		require.Equal(t, []string{"hangs"}, c.flushedPods())
	})
}

// An agent sends the final status of an earlier boot only after a shutdown of its own. The next
// agent does not send it again.
func TestCarriedStatusAfterAShutdownIsSentOnce(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		n.end()

		n.setPods()
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, c.flushedPods())
		c.setAway(false)
		n.advance(time.Minute)
		require.Equal(t, []string{"web"}, c.flushedPods())
		n.end()

		clear(c.final)
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "three", began: time.Now()})
		n.advance(time.Minute)
		require.Empty(t, c.flushedPods())
	})
}

// An agent without a reporter drops the final statuses that a former agent has stored.
func TestCarriedStatusesWithoutAReporter(t *testing.T) {
	dir := t.TempDir()
	web := shutdowntest.Pod("web", 0, 5)
	inBubble(t, list(web), func(t *testing.T, n *node) {
		n.opts.StateDir, n.opts.Reporter = dir, &cluster{away: true}
		n.runOnBoot(&boot{id: "one", began: time.Now()})
		n.announce()
		n.advance(time.Minute)
		n.crash()
		n.host.SetPending(nil)
		n.opts.Reporter = nil
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		n.advance(time.Second)
		require.True(t, n.m.Admit(web).Admit)
	})
}
