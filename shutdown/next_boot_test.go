//go:build unix

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

// choosy is a cluster that refuses the final status of one pod.
type choosy struct {
	cluster

	refused string // the pod's name
}

func (c *choosy) FlushPod(ctx context.Context, pod *v1.Pod) error {
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
	bubble(t, list(shutdowntest.Pod("ended", 0, 5), shutdowntest.Pod("hangs", 0, 5)), func(t *testing.T, n *node) {
		c := &choosy{}
		c.set(true)
		n.opts.StateDir, n.opts.Reporter = dir, c
		n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true, Deaf: true}}
		n.runOn(&boot{id: "one", began: time.Now().Add(-1000 * time.Hour)}) // its clock is far ahead of the next one's
		n.announce()
		n.pass(5 * time.Second)
		n.crash()

		n.host.SetPending(nil)
		next := &boot{id: "two", began: time.Now()}
		c.set(false)
		c.refused = "hangs"
		n.runOn(next)
		n.pass(time.Second)
		require.Equal(t, []string{"ended"}, c.names())
		n.crash()

		c.refused = ""
		n.opts.Source = nil // nobody can say that the shutdown does not go on
		n.runOn(next)
		require.True(t, n.m.Admit(nil).Admit)
		require.Empty(t, n.killer.Kills())
		n.pass(time.Second)
		require.Equal(t, []string{"ended", "hangs"}, c.names(), "it has ended with its boot")
	})
}

// Final statuses of an earlier boot are not lost in a shutdown of this boot.
func TestStatusesOfAFormerBootSurviveAShutdown(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("hangs", 0, 5)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true, Deaf: true}}
		n.runOn(one)
		n.announce()
		n.pass(5 * time.Second)
		n.crash()

		n.host.SetPending(nil)
		n.set()
		next := &boot{id: "two", began: time.Now()}
		n.runOn(next)
		require.NoError(t, n.m.Trigger(shutdown.Event{}))
		n.pass(time.Minute)
		n.crash()

		c.set(false)
		n.runOn(next)
		n.pass(2 * time.Second)
		require.Equal(t, []string{"hangs"}, c.names())
	})
}
