//go:build unix && go1.25

package shutdown_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// hangingMarker is a cluster that takes an hour to mark the pod "spared" as not ready.
type hangingMarker struct{ *cluster }

func (hangingMarker) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	if pod.Name != "spared" {
		return nil
	}
	return waitOrCancelled(ctx, time.Hour)
}

// The report says once, with the reason, that pods could not be marked not ready.
func TestMarksThatFailAreReportedOnce(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("spared", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
		n.opts.Reporter = hangingMarker{&cluster{}}
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, []string{"failed to mark 1 pods not ready: the time for it was spent"}, n.lastReport().Errors)
	})
}
