//go:build go1.25

package shutdown_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// ongoingKillError is the error of a kill that is still under way.
type ongoingKillError struct{ after time.Duration }

func (ongoingKillError) Error() string { return "timeout waiting to kill pod" }

// Await returns when the kill is over, after g.after.
func (g ongoingKillError) Await(context.Context) (shutdown.KillResult, error) {
	<-time.After(g.after)
	return shutdown.KillResult{Outcome: "Forced"}, nil
}

// If the killer's error has an Await method, the manager calls Await and does not call the killer again.
func TestAKillWhoseErrorHasAwaitIsNotRepeated(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
		asked := 0
		n.opts.Killer = shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			if pod.Name == "web" {
				asked++
				return shutdown.KillResult{}, fmt.Errorf("overdue: %w", ongoingKillError{8 * time.Second})
			}
			return n.killer.KillPod(ctx, pod, req)
		})
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 1, asked)
		require.Equal(t, 8*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, "Forced", n.lastReport().Pods[0].Outcome)
	})
}
