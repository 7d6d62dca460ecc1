//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// If a shutdown is cancelled while it marks pods not ready, their readiness is restored.
func TestACancellationRestoresReadiness(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{MarkTakes: 300 * time.Millisecond, MarkErr: func(call int) error {
			if call == 1 {
				return errors.New("not now")
			}
			return nil
		}}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		synctest.Wait()
		n.advance(time.Minute)
		require.Empty(t, n.killer.Kills())
		marked := reporter.Marked()
		require.Len(t, marked, 3)
		require.Error(t, marked[0].Err, "its context has ended")
		require.False(t, marked[0].Ready)
		require.True(t, marked[1].Ready)
		require.True(t, marked[2].Ready)
		require.NoError(t, marked[2].Err, "it was tried again")
		require.Empty(t, n.lastReport().Errors)
	})
}

// Readiness is no longer restored once another shutdown has begun.
func TestANewShutdownStopsRestoringReadiness(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{MarkTakes: 300 * time.Millisecond}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		n.advance(100 * time.Millisecond) // web is being restored
		n.announce()
		n.advance(time.Minute)
		marked := reporter.Marked()
		require.Len(t, marked, 3)
		require.True(t, marked[1].Ready)
		require.Error(t, marked[1].Err, "it was given up")
		require.False(t, marked[2].Ready, "which comes last")
		require.NoError(t, marked[2].Err)
		require.Len(t, n.killer.Kills(), 1)
	})
}

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
