//go:build unix

package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

func staticPod() *v1.Pod {
	pod := shutdowntest.Pod("static", 0, 5)
	pod.Annotations = map[string]string{staticpod.SourceAnnotation: "file"}
	return pod
}

// The final status of a static pod that is started again after a cancelled shutdown, under the
// same UID, is not told any more: neither by its agent nor by the next ones of the same boot.
// The pod need not wait for the API server, which may be the pod itself.
func TestStatusOfAStaticPodThatIsStartedAgain(t *testing.T) {
	static := staticPod()
	for name, carried := range map[string]bool{"by its agent": false, "by the next agent": true} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, list(static, shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node, one *boot) {
				c := &cluster{away: true}
				n.opts.Reporter = c
				n.runOnBoot(one)
				n.announce()
				n.advance(time.Minute)
				require.False(t, n.m.Admit(static).Admit, "the node shuts down")
				n.host.Cancel()
				n.advance(time.Second)
				if carried {
					n.crash()
					n.runOnBoot(one)
				}
				require.False(t, n.m.Admit(static).Admit, "its status is on the disk")
				n.advance(100 * time.Millisecond)
				require.True(t, n.m.Admit(static).Admit)
				n.crash()
				n.runOnBoot(one)
				require.True(t, n.m.Admit(static).Admit)
				c.setAway(false)
				n.advance(5 * time.Second)
				require.Equal(t, []string{"web"}, c.flushedPods())
			})
		})
	}
}

// A static pod is not admitted while its final status is being sent. That is given up at once.
func TestStaticPodWhoseStatusIsBeingSent(t *testing.T) {
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

// What was acknowledged counts once it is on the disk: a static pod that is started again
// before that would be said to have failed by the agent after one that is killed.
func TestStaticPodWaitsForTheDisk(t *testing.T) {
	static, dir := staticPod(), t.TempDir()
	inBubble(t, list(static), func(t *testing.T, n *node) {
		c := &cluster{away: true}
		n.opts.StateDir, n.opts.Reporter = dir, c
		one := &boot{id: "one", began: time.Now()}
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		n.host.Cancel()
		n.advance(time.Second)
		c.setAway(false)
		for len(c.flushedPods()) == 0 {
			n.advance(time.Millisecond)
		}
		require.False(t, n.m.Admit(static).Admit)
		for !n.m.Admit(static).Admit {
			n.advance(time.Millisecond)
		}
		n.crash()
		clear(c.final)
		n.runOnBoot(one)
		n.advance(5 * time.Second)
		require.Empty(t, c.flushedPods())
	})
}

// silentCluster is a reporter for final statuses that does not answer.
type silentCluster struct {
	cluster

	calls int
}

func (c *silentCluster) FlushPod(ctx context.Context, _ *v1.Pod) error {
	c.calls++
	<-ctx.Done()
	return context.Cause(ctx)
}
