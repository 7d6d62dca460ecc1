//go:build go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// The second for the marks of a bucket begins once its pods are listed. If the bucket has time
// to spare, a slow list takes no time from the marks.
func TestMarksHaveTheirTimeAfterASlowList(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Reporter = markingServer{newSlowServer(500 * time.Millisecond)}
		n.opts.Pods = shutdown.PodsFunc(func() []*v1.Pod {
			if len(n.killer.Kills()) > 0 {
				<-time.After(800 * time.Millisecond)
			}
			return n.currentPods()
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 20, "etcd": 30}, n.grantedSeconds())
		require.Empty(t, n.lastReport().Errors)
	})
}
