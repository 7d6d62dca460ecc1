//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// An agent dies before the API server has accepted the final statuses. Later agents refuse a pod while its status is
// pending, and send each status once.
//   - In the same boot (boot ID "one") the next agent also kills the pod named hangs again, whose kill had not returned.
//     This kill ends at once, because crash replaces the killer by one without behaviours. All three statuses are sent.
//   - After a reboot (boot ID "next") the pod named hangs has ended with the old boot: its status is sent without a kill.
//     The static pod runs again, so that its status is not sent.
func TestPendingStatusesAreSentByTheNextAgent(t *testing.T) {
	ended := shutdowntest.Pod("ended", regularPriority, 5)
	ended.Spec.Containers = []v1.Container{{Name: "main", Image: "secret"}}
	static := staticPod()
	for id, want := range map[string][]string{"one": {"ended", "hangs", "static"}, "next": {"ended", "hangs"}} {
		t.Run(id, func(t *testing.T) {
			inBubbleWithState(t, list(ended, static, shutdowntest.Pod("hangs", regularPriority, 5)), func(t *testing.T, n *node, one *boot) {
				c := &cluster{unreachable: true}
				n.opts.Reporter = c
				n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true}, "ended": {Status: &v1.PodStatus{Phase: v1.PodSucceeded}}}
				n.runOnBoot(one)
				n.announce()
				n.advance(time.Minute)
				n.crash()
				n.host.SetPending(nil)
				nextBoot := one
				if id != one.id { // a later boot
					nextBoot = &boot{id: id, began: time.Now().Add(30 * time.Minute)}
				}
				for range 2 { // two more agents cannot reach the API server either
					n.runOnBoot(nextBoot)
					n.advance(time.Second)
					require.Empty(t, c.flushedPods())
					require.False(t, n.m.Admit(ended).Admit, "its status is pending")
					require.True(t, n.m.Admit(shutdowntest.Pod("other", regularPriority, 5)).Admit)
					n.end()
				}
				n.runOnBoot(nextBoot)
				c.setUnreachable(false)
				n.advance(2 * time.Second)
				require.Equal(t, want, c.flushedPods())
				require.True(t, n.m.Admit(ended).Admit)
				require.Equal(t, v1.PodSucceeded, c.final["ended"].Status.Phase, "as the killer returned it")
				require.Equal(t, "main", c.final["ended"].Spec.Containers[0].Name)
				require.Empty(t, c.final["ended"].Spec.Containers[0].Image, "images are not stored")
				n.crash()

				clear(c.final)
				n.runOnBoot(nextBoot)
				n.advance(2 * time.Second)
				require.Empty(t, c.flushedPods())
			})
		})
	}
}

// A pod hangs until the machine reboots. The agent of the next boot sends its final status, and deletes it, as PolicyDelete
// says.
func TestThePodOfAPreviousBootIsDeleted(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("hangs", regularPriority, 5)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{}
		n.opts.Reporter = c
		n.opts.Policy = func(source.Kind) shutdown.PodPolicy { return shutdown.PolicyDelete }
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, IgnoresContext: true}
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, c.flushedPods())
		n.crash()
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "next", began: time.Now()})
		n.advance(time.Second)
		require.Equal(t, []string{"hangs"}, c.flushedPods())
		require.NotNil(t, c.final["hangs"].DeletionTimestamp)
	})
}

// NewManager finds a pending status in the state log, so that the pod is refused even before Run. The previous agent, which
// still runs, then sends the status. The pod is admitted once Run has read the log again.
func TestAPodWithAPendingStatusIsRefusedBeforeRun(t *testing.T) {
	web := shutdowntest.Pod("web", regularPriority, 5)
	inBubbleWithState(t, list(web), func(t *testing.T, n *node, one *boot) {
		c := &cluster{unreachable: true}
		n.opts.Reporter = c
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		next := &boot{id: "next", began: time.Now()}
		m, err := shutdown.NewManagerOn(n.opts, next.sinceBoot)
		require.NoError(t, err)
		require.False(t, m.Admit(web).Admit)
		require.True(t, m.Admit(nil).Admit)
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

// FlushPod ignores its context and takes a minute. It succeeds only after Run has ended, too late for the log. The status stays
// pending in the log: the pod is refused, and the next agent sends the status again.
func TestAStatusThatIsAcknowledgedAfterRunStaysPending(t *testing.T) {
	web := shutdowntest.Pod("web", regularPriority, 5)
	inBubbleWithState(t, list(web), func(t *testing.T, n *node, one *boot) {
		n.opts.Reporter = &lateCluster{}
		n.runOnBoot(one)
		n.announce()
		n.host.Cancel()
		n.advance(time.Second)
		require.ErrorContains(t, n.stopRun(), "Options.Reporter.FlushPod for pod default/web")
		n.advance(time.Minute)
		require.False(t, n.m.Admit(web).Admit)
		c := &cluster{}
		n.opts.Reporter = c
		n.runOnBoot(one)
		require.Equal(t, []string{"web"}, c.flushedPods())
		require.True(t, n.m.Admit(web).Admit)
	})
}

// lateCluster is a cluster whose FlushPod returns after a minute and ignores its context.
type lateCluster struct{ cluster }

// FlushPod succeeds after a minute.
func (*lateCluster) FlushPod(context.Context, *v1.Pod) error {
	<-time.After(time.Minute)
	return nil
}
