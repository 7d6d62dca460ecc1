//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// An agent dies before the API server has accepted the final statuses. A second and a third agent cannot reach the API server
// either, and refuse a pod whose status is pending. A fourth one sends each status, and a fifth one sends none again.
func TestPendingStatusesAreSentByALaterAgent(t *testing.T) {
	ended, static, hangs := shutdowntest.Pod("ended", regularPriority, 5), staticPod(), shutdowntest.Pod("hangs", regularPriority, 5)
	for id, want := range map[string][]string{
		"one":  {"ended", "hangs", "static"}, // the same boot: the pod named hangs is killed again, and ends at once
		"next": {"ended", "hangs"},           // a reboot has ended the pod named hangs, and the static pod runs again
	} {
		t.Run("boot "+id, func(t *testing.T) {
			inBubbleWithState(t, list(ended, static, hangs), func(t *testing.T, n *node, thisBoot *boot) {
				c := &cluster{unreachable: true}
				n.opts.Reporter = c
				n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true}, "ended": {Status: &v1.PodStatus{Phase: v1.PodSucceeded}}}
				n.runOnBoot(thisBoot)
				n.announce()
				n.advance(time.Minute)
				n.crash()
				n.host.SetPending(nil)
				nextBoot := thisBoot
				if id == "next" {
					nextBoot = &boot{id: id, began: time.Now().Add(30 * time.Minute)} // sinceBoot says that it began 30 minutes ago
				}

				for range 2 {
					n.runOnBoot(nextBoot)
					n.advance(time.Second)
					require.Empty(t, c.flushedPods())
					require.False(t, n.admits(ended), "its status is pending")
					require.True(t, n.admitsNewPods())
					n.end()
				}

				// The API server can be reached again.
				n.runOnBoot(nextBoot)
				c.setUnreachable(false)
				n.advance(2 * time.Second)
				require.Equal(t, want, c.flushedPods())
				require.True(t, n.admits(ended))
				require.Equal(t, v1.PodSucceeded, c.final["ended"].Status.Phase, "as the killer returned it")

				n.crash()
				clear(c.final)
				n.runOnBoot(nextBoot)
				n.advance(2 * time.Second)
				require.Empty(t, c.flushedPods(), "each status was acknowledged")
			})
		})
	}
}

// A pod hangs until the machine reboots. The agent of the next boot sends its final status, and deletes it, as PolicyDelete
// says.
func TestThePodOfAPreviousBootIsDeleted(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("hangs", regularPriority, 5)), func(t *testing.T, n *node, thisBoot *boot) {
		c := &cluster{}
		n.opts.Reporter = c
		n.opts.Policy = func(source.Kind) shutdown.PodPolicy { return shutdown.PolicyDelete }
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, IgnoresContext: true}
		n.runOnBoot(thisBoot)
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, c.flushedPods(), "the pod has not ended")
		n.crash()
		n.runOnNextBoot()
		n.advance(time.Second)
		require.Equal(t, []string{"hangs"}, c.flushedPods())
		require.NotNil(t, c.final["hangs"].DeletionTimestamp)
	})
}

// The state log of the previous agent has a pending status, so the next manager refuses the pod even before Run. The previous agent
// then sends the status and ends. The next manager admits the pod when its Run has read the log again.
func TestAPodWithAPendingStatusIsRefusedBeforeRun(t *testing.T) {
	web := shutdowntest.Pod("web", regularPriority, 5)
	inBubbleWithState(t, list(web), func(t *testing.T, n *node, thisBoot *boot) {
		c := &cluster{unreachable: true}
		n.opts.Reporter = c
		n.runOnBoot(thisBoot)
		n.announce()
		n.advance(time.Minute)
		next := &boot{id: "next", began: time.Now()}
		m, err := shutdown.NewManagerOn(n.opts, next.sinceBoot)
		require.NoError(t, err)
		require.False(t, m.Admit(web).Admit)
		require.True(t, m.Admit(nil).Admit, "a new pod")
		c.setUnreachable(false)
		n.advance(2 * time.Second)
		n.end()
		n.host.SetPending(nil)
		require.False(t, m.Admit(web).Admit, "the new manager has not read the state log again")
		n.start(m)
		synctest.Wait()
		require.True(t, m.Admit(web).Admit)
	})
}

// A shutdown kills web, which ends at once, and is cancelled, so that the node admits pods again. FlushPod for web ignores its context
// and takes a minute (lateCluster). It succeeds only after Run has ended, too late for the state log. The status stays pending in the
// log: the pod is refused, and the next agent sends the status again.
func TestAStatusThatIsAcknowledgedAfterRunStaysPending(t *testing.T) {
	web := shutdowntest.Pod("web", regularPriority, 5)
	inBubbleWithState(t, list(web), func(t *testing.T, n *node, thisBoot *boot) {
		n.opts.Reporter = &lateCluster{}
		n.runOnBoot(thisBoot)
		n.announce()
		n.host.Cancel()
		n.advance(time.Second)
		require.ErrorContains(t, n.stopRun(), "Options.Reporter.FlushPod for pod default/web")
		n.advance(time.Minute)
		require.False(t, n.admits(web), "the log still has its status")
		c := &cluster{}
		n.opts.Reporter = c
		n.runOnBoot(thisBoot)
		require.Equal(t, []string{"web"}, c.flushedPods())
		require.True(t, n.admits(web))
	})
}

// lateCluster is a cluster whose FlushPod returns after a minute and ignores its context.
type lateCluster struct{ cluster }

// FlushPod succeeds after a minute.
func (*lateCluster) FlushPod(context.Context, *v1.Pod) error {
	<-time.After(time.Minute)
	return nil
}
