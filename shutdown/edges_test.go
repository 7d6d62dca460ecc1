package shutdown_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The manager does not keep the drain of TerminateAll after its end.
func TestTerminateAllIsForgotten(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.run()
		_, err := n.m.TerminateAll(t.Context())
		require.NoError(t, err)
		require.Zero(t, n.m.EarlierDrains())
	})
}

// A shutdown that overtakes another one does not call Hold again.
func TestOvertakingDoesNotHoldAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		holds := 0
		n.opts.Hold = func(context.Context) error { holds++; return nil }
		n.run()
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{}))
		n.advance(time.Second)
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds())
		n.host.Announce(shutdown.Event{Deadline: began.Add(35 * time.Second)})
		n.advance(time.Minute)
		require.Equal(t, 1, holds)
		require.Equal(t, 20*time.Second, n.killedAfter("etcd", began))
	})
}

// A cancelled Trigger admits pods again, even if another agent has a shutdown on record.
func TestTakenBackBesideAnotherAgent(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(2 * time.Second)
		other := n.startOther(twoPods(), one, func(other *node) { other.opts.Source = nil })
		n.advance(12 * time.Second)
		require.False(t, other.m.Admit(nil).Admit)
		require.NoError(t, other.m.Trigger(shutdown.Event{Cancelled: true}))
		synctest.Wait()
		require.True(t, other.m.Admit(nil).Admit)
		other.end()
	})
}

// The report has the failures of hooks. It has none if they succeed, or if the shutdown was
// cancelled meanwhile.
func TestReportOfTheHooks(t *testing.T) {
	errBoom := errors.New("boom")
	for _, test := range []struct {
		name   string
		change func(*node, *shutdowntest.Reporter)
		cancel bool
		want   []string
	}{
		{name: "all is well", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.Hold = func(context.Context) error { return nil }
		}},
		{name: "the hold fails", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.Hold = func(context.Context) error { return errBoom }
		}, want: []string{"failed to hold the shutdown: boom"}},
		{name: "the hold is cancelled", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.Hold = func(ctx context.Context) error { <-ctx.Done(); return errBoom }
		}, cancel: true},
		{name: "late start hangs", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.LateStart = func(shutdown.Event) bool { <-time.After(5 * time.Second); return true }
		}, want: []string{"failed to ask whether the drain begins late, it begins at once: "}},
		{name: "publishing fails", change: func(_ *node, r *shutdowntest.Reporter) {
			r.PublishErr = func(int) error { return errBoom }
		}, want: []string{"failed to publish the node state: boom"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter = reporter
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
				test.change(n, reporter)
				n.run()
				n.announce()
				if test.cancel {
					n.advance(time.Second)
					n.host.Cancel()
				}
				n.advance(time.Minute)
				got := n.lastReport().Errors
				require.Len(t, got, len(test.want), "%q", got)
				for i, want := range test.want {
					require.Contains(t, got[i], want)
				}
			})
		})
	}
}

// Refusals after the last write are stored at the end of Run.
func TestRefusalsAfterTheDrainAreStored(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		before, err := os.ReadFile(filepath.Join(n.opts.StateDir, progressFile))
		require.NoError(t, err)
		require.NotContains(t, string(before), `"refused":1`)
		require.False(t, n.m.Admit(nil).Admit)
		n.end()
		after, err := os.ReadFile(filepath.Join(n.opts.StateDir, progressFile))
		require.NoError(t, err)
		require.Contains(t, string(after), `"refused":1`)
	})
}

// TerminateAll returns the errors of the drain in addition to the report.
func TestTerminateAllGivesItsFailures(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { return errors.New("boom") })
		n.run()
		report, err := n.m.TerminateAll(t.Context())
		require.ErrorContains(t, err, "unmount: boom")
		require.Len(t, report.Errors, 2, "of both buckets")
	})
}
