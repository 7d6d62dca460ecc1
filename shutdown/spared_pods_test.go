//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// An agent dies between a readiness mark and the kill. If the shutdown is cancelled, the next agent
// restores the readiness, also if only the list has the mark and the log does not.
func TestTheNextAgentRestoresReadiness(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		reporter := &shutdowntest.Reporter{MarkTakes: 900 * time.Millisecond}
		n.opts.Reporter = reporter
		n.runOnBoot(one)
		n.announce()
		n.advance(500 * time.Millisecond)
		n.crash()
		podcondition.Set(&n.pods[1].Status, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: v1.PodReasonTerminationByKubelet}, metav1.Now())
		n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) {
			<-time.After(100 * time.Millisecond) // so that the API server has accepted the node's state before
			return n.currentPods(), nil
		}
		n.runOnBoot(one)
		n.advance(300 * time.Millisecond)
		n.host.Cancel()
		n.advance(2 * time.Second)
		require.Empty(t, n.killer.Kills())
		ready := map[string]bool{}
		for _, mark := range reporter.Marked() {
			ready[mark.Pod] = mark.Ready
		}
		require.Equal(t, map[string]bool{"web": true, "etcd": true}, ready)
	})
}
