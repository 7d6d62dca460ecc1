package shutdown_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Options.OnReport has ten seconds before its context ends, also if it begins late, and is waited
// for. The end of TerminateAll's context ends its own.
func TestTerminateAllWaitsForOnReport(t *testing.T) {
	for name, test := range map[string]struct {
		takes, end, took time.Duration // end is that of TerminateAll's context
		err              error
	}{
		"a slow one":          {takes: 9 * time.Second, end: time.Minute, took: 9 * time.Second},
		"one that hangs":      {takes: time.Hour, end: time.Minute, took: 10 * time.Second, err: context.Canceled},
		"TerminateAll is cut": {takes: time.Hour, end: 3 * time.Second, took: 3 * time.Second, err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				var cut error
				n.opts.OnReport = func(ctx context.Context, _ shutdown.Report) {
					select {
					case <-time.After(test.takes):
					case <-ctx.Done():
					}
					cut = ctx.Err()
				}
				n.run()
				ctx, end := context.WithTimeout(t.Context(), test.end)
				defer end()
				began := time.Now()
				report, _ := n.m.TerminateAll(ctx)
				require.Len(t, report.Pods, 2)
				require.Equal(t, test.took, time.Since(began))
				require.ErrorIs(t, cut, test.err)
			})
		})
	}
}
