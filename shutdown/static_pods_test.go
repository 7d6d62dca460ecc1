//go:build unix && go1.25

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
)

// A static pod restarts under the same UID after a cancelled shutdown, when its final status is still pending. The first
// Admit, by the same agent or by the next one, refuses the pod and withdraws the status: neither this agent nor a later
// one sends it. The pod is admitted as soon as the log has that, without waiting for the API server, which may be the pod
// itself.
func TestARestartedStaticPodWithdrawsItsFinalStatus(t *testing.T) {
	static := staticPod()
	for name, restarts := range map[string]bool{"by its agent": false, "by the next agent": true} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, list(static, shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node, one *boot) {
				c := &cluster{unreachable: true}
				n.opts.Reporter = c
				n.runOnBoot(one)
				n.announce()
				n.advance(time.Minute)
				require.False(t, n.m.Admit(static).Admit, "a shutdown is under way")
				n.host.Cancel()
				n.advance(time.Second)
				if restarts {
					n.crash()
					n.runOnBoot(one)
				}
				require.False(t, n.m.Admit(static).Admit, "its status is pending, and is withdrawn now")
				n.advance(100 * time.Millisecond)
				require.True(t, n.m.Admit(static).Admit)
				n.crash()
				n.runOnBoot(one)
				require.True(t, n.m.Admit(static).Admit)
				c.setUnreachable(false)
				n.advance(5 * time.Second)
				require.Equal(t, []string{"web"}, c.flushedPods())
			})
		})
	}
}

// The kill of a static pod is given up, and the shutdown is cancelled. The pod ends by itself, and is to start again: the
// first Admit notes the end, the next one admits the new pod. The next shutdown gives it its own grace period again.
func TestAStaticPodWhoseKillWasGivenUpStartsAnew(t *testing.T) {
	static := staticPod()
	inBubble(t, list(static), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Err: shutdown.ErrNoRetry}
		n.run()
		n.announce()
		n.advance(time.Minute)
		granted := n.grantedSeconds()
		require.NotZero(t, granted[static.Name])
		n.host.Cancel()
		n.advance(time.Second)
		require.False(t, n.m.Admit(static).Admit)
		require.True(t, n.m.Admit(static).Admit)
		n.announce()
		require.Equal(t, granted, n.grantedSeconds())
	})
}

// A static pod is refused while its final status is being sent. The refusing Admit cancels that request, so that the
// next Admit admits the pod.
func TestAdmitEndsTheRequestOfAStaticPod(t *testing.T) {
	static := staticPod()
	inBubble(t, list(static), func(t *testing.T, n *node) {
		c := &silentCluster{}
		n.opts.Reporter = c
		n.run()
		n.announce()
		n.host.Cancel()
		synctest.Wait()
		require.Equal(t, 1, c.calls)
		require.False(t, n.m.Admit(static).Admit)
		synctest.Wait()
		require.True(t, n.m.Admit(static).Admit)
		n.advance(time.Minute)
		require.Equal(t, 1, c.calls)
	})
}

// A static pod whose final status was acknowledged is admitted only when the log has the acknowledgement, here after 3
// s. Otherwise the next agent could send the status of a pod that runs again.
func TestAStaticPodIsAdmittedAfterItsStatusIsStored(t *testing.T) {
	static := staticPod()
	inBubbleWithState(t, list(static), func(t *testing.T, n *node, one *boot) {
		c := &cluster{unreachable: true}
		n.opts.Reporter = c
		isSlow := false
		n.runOnDisk(one, func(step string) error {
			if isSlow && step == "write" {
				<-time.After(3 * time.Second)
			}
			return nil
		})
		n.announce()
		n.advance(time.Minute)
		n.host.Cancel()
		n.advance(time.Second)
		isSlow = true
		c.setUnreachable(false)
		for len(c.flushedPods()) == 0 {
			n.advance(time.Millisecond)
		}
		n.advance(2 * time.Second)
		require.False(t, n.m.Admit(static).Admit)
		n.advance(2 * time.Second)
		require.True(t, n.m.Admit(static).Admit)
	})
}

// silentCluster is a cluster whose FlushPod does not return before its context ends.
type silentCluster struct {
	cluster

	calls int
}

// FlushPod counts the call and waits for the end of its context.
func (c *silentCluster) FlushPod(ctx context.Context, _ *v1.Pod) error {
	c.calls++
	<-ctx.Done()
	return context.Cause(ctx)
}
