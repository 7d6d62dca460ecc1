//go:build unix && go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A static pod is to be restarted by the next agent before its Run, while its final status is still pending. Every Admit
// refuses it: nothing can be stored before Run, and Run would send the status while the pod runs. When Run has read the
// state, the first Admit withdraws the status, and the second one admits the pod.
func TestAStaticPodIsRefusedUntilRun(t *testing.T) {
	static := staticPod()
	inBubbleWithState(t, list(static), func(t *testing.T, n *node, one *boot) {
		c := &cluster{unreachable: true}
		n.opts.Reporter = c
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		n.host.Cancel()
		n.advance(time.Second)
		n.crash()
		m, err := shutdown.NewManagerOn(n.opts, one.sinceBoot)
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
		require.Empty(t, c.flushedPods())
	})
}

// A static pod is to be restarted under the same UID after a cancelled shutdown, while its final status is still pending.
// The first Admit, of the same agent or of the next one, refuses the pod and withdraws the status, so that no agent sends
// it. The pod is admitted as soon as the log has the withdrawal, without waiting for the API server, which may be the pod
// itself.
func TestARestartedStaticPodWithdrawsItsFinalStatus(t *testing.T) {
	static := staticPod()
	for name, restarts := range map[string]bool{"by its agent": false, "by the next agent": true} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, list(static, shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node, one *boot) {
				c := &cluster{unreachable: true}
				n.opts.Reporter = c
				n.runOnBoot(one)
				n.announce()
				n.advance(time.Minute)
				require.False(t, n.admits(static), "a shutdown is under way")
				n.host.Cancel()
				n.advance(time.Second)
				if restarts {
					n.crash()
					n.runOnBoot(one)
				}
				require.False(t, n.admits(static), "its status is pending, and is withdrawn now")
				n.advance(100 * time.Millisecond)
				require.True(t, n.admits(static))
				n.crash()
				n.runOnBoot(one)
				require.True(t, n.admits(static))
				c.setUnreachable(false)
				n.advance(5 * time.Second)
				require.Equal(t, []string{"web"}, c.flushedPods())
			})
		})
	}
}
