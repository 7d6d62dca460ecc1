//go:build unix && go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The machine's shutdown is cancelled, and the agent dies while the final status of a static pod is pending. The next agent wants to
// start the pod again before it calls Run. Until Run has read the state, every Admit refuses the pod: it cannot store that the
// pending status is withdrawn, so Run would send that status for a pod that runs. After that the first Admit withdraws the status,
// and the second one admits the pod.
func TestAStaticPodIsRefusedUntilRun(t *testing.T) {
	static := staticPod()
	inBubbleWithState(t, list(static), func(t *testing.T, n *node, thisBoot *boot) {
		c := &cluster{unreachable: true}
		n.opts.Reporter = c
		n.runOnBoot(thisBoot)
		n.announce()
		n.advance(time.Minute)
		n.host.Cancel()
		n.advance(time.Second)
		n.crash()

		// The next agent, before its Run.
		m, err := shutdown.NewManagerOn(n.opts, thisBoot.sinceBoot)
		require.NoError(t, err)
		for range 3 {
			require.False(t, m.Admit(static).Admit)
			n.advance(time.Minute)
		}
		n.start(m)
		n.advance(time.Second)
		require.False(t, m.Admit(static).Admit, "its status is pending, and is withdrawn now")
		n.advance(time.Second)
		require.True(t, m.Admit(static).Admit)
		c.setUnreachable(false)
		n.advance(time.Minute)
		require.Empty(t, c.flushedPods(), "the withdrawn status is not sent")
	})
}

// A shutdown is cancelled while the final status of a static pod is pending. The same agent, or the next one, wants to start the pod
// again, under the same UID. The first Admit refuses the pod and withdraws the status, so that no agent sends it. The pod is
// admitted as soon as the log has the withdrawal, without waiting for the API server, which may be the pod itself.
func TestARestartedStaticPodWithdrawsItsFinalStatus(t *testing.T) {
	static := staticPod()
	for name, restarts := range map[string]bool{"by its agent": false, "by the next agent": true} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, list(static, shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node, thisBoot *boot) {
				c := &cluster{unreachable: true}
				n.opts.Reporter = c
				n.runOnBoot(thisBoot)
				n.announce()
				n.advance(time.Minute)
				require.False(t, n.admits(static), "a shutdown is under way")
				n.host.Cancel()
				n.advance(time.Second)
				if restarts {
					n.crash()
					n.runOnBoot(thisBoot)
				}
				require.False(t, n.admits(static), "its status is pending, and is withdrawn now")
				n.advance(100 * time.Millisecond)
				require.True(t, n.admits(static))
				n.crash()
				n.runOnBoot(thisBoot)
				require.True(t, n.admits(static))
				c.setUnreachable(false)
				n.advance(5 * time.Second)
				require.Equal(t, []string{"web"}, c.flushedPods())
			})
		})
	}
}
