//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Options.OnReport has ten seconds before its context ends, also if it begins late, and is waited
// for. The end of TerminateAll's context ends its own.
func TestTerminateAllWaitsForOnReport(t *testing.T) {
	for name, test := range map[string]struct {
		takes, end, took time.Duration // end is that of TerminateAll's context
		err              error
		hangs            string // the error of TerminateAll; a call that is named ignores its context
	}{
		"one that ignores the end": {
			takes: time.Hour, end: 2 * time.Hour, took: 20 * time.Second,
			hangs: "calls that have not returned: Options.OnReport",
		},
		"a slow one":          {takes: 9 * time.Second, end: time.Minute, took: 9 * time.Second},
		"one that hangs":      {takes: time.Hour, end: time.Minute, took: 10 * time.Second, err: context.Canceled},
		"TerminateAll is cut": {takes: time.Hour, end: 3 * time.Second, took: 3 * time.Second, err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				var cut error
				n.opts.OnReport = func(ctx context.Context, _ shutdown.Report) {
					done := ctx.Done()
					if test.hangs != "" {
						done = nil
					}
					select {
					case <-time.After(test.takes):
					case <-done:
					}
					cut = ctx.Err()
				}
				n.run()
				ctx, end := context.WithTimeout(t.Context(), test.end)
				defer end()
				began := time.Now()
				report, err := n.m.TerminateAll(ctx)
				require.Len(t, report.Pods, 2)
				require.Equal(t, test.took, time.Since(began))
				if test.hangs != "" {
					require.EqualError(t, err, test.hangs)
					n.advance(test.takes) // until it returns
					return
				}
				require.NoError(t, err)
				require.ErrorIs(t, cut, test.err)
			})
		})
	}
}

// A shutdown takes over the pods of TerminateAll, which waits for the OnReport of its own drain
// all the same.
func TestTerminateAllWaitsForOnReportWhenAShutdownTakesOver(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		var returned []error
		n.opts.OnReport = func(ctx context.Context, _ shutdown.Report) {
			select {
			case <-time.After(9 * time.Second):
			case <-ctx.Done():
			}
			returned = append(returned, ctx.Err())
		}
		n.run()
		time.AfterFunc(time.Second, func() { n.host.Announce(shutdown.Event{Kind: shutdown.KindPoweroff}) })
		report, err := n.m.TerminateAll(t.Context())
		require.NoError(t, err)
		require.Equal(t, shutdown.KindPoweroff, report.Kind)
		require.NotEmpty(t, returned)
		require.NoError(t, errors.Join(returned...))
	})
}
