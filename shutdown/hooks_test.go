//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// volumes is a VolumeWaiter of one function.
type volumes func(ctx context.Context, pods []*v1.Pod) error

// WaitForAllPodsUnmount calls the function.
func (v volumes) WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error {
	return v(ctx, pods)
}

// Publishing hangs, and Hold has left all of its 10 s. The first kill still waits only 2 s, the time of
// publishing.
func TestPublishingDoesNotGetTheTimeOfTheHold(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.opts.Hold = func(context.Context) error { return nil }
		n.opts.Reporter = flusher{&shutdowntest.Reporter{PublishTakes: time.Hour}}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 2*time.Second, n.killedAfter("web", began))
	})
}

// The lock is still held when OnRelease is called.
func TestOnReleaseIsCalledBeforeTheRelease(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		var held []int
		n.opts.OnRelease = func(context.Context) { held = append(held, n.host.Held()) }
		n.run()
		n.announce()
		require.Equal(t, []int{1}, held)
		require.Zero(t, n.host.Held())
	})
}

// A panic of OnRelease is in the stored report, although the drain was over before.
func TestAPanicOfOnReleaseIsStored(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node, one *boot) {
		n.opts.OnRelease = func(context.Context) { panic("nobody listens") }
		n.runOnBoot(one)
		n.announce()
		stored, _, err := shutdown.StoredReport(n.opts.StateDir) // the host shuts down at once
		require.NoError(t, err)
		require.Len(t, stored.Errors, 1)
		require.Contains(t, stored.Errors[0], "nobody listens")
		require.False(t, stored.Ended.IsZero())
		require.Zero(t, n.host.Held())
	})
}

// The report has the errors of failed hooks, but not of hooks that a cancellation ended.
func TestTheReportHasTheErrorsOfHooks(t *testing.T) {
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
		}, want: []string{"Hold failed: boom"}},
		{name: "the hold is cancelled", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.Hold = func(ctx context.Context) error { <-ctx.Done(); return errBoom }
		}, cancel: true},
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

// OnPlan gets the plan when a drain begins, and OnReport the report when it is over or cancelled.
func TestOnPlanAtTheBeginningAndOnReportAtTheEnd(t *testing.T) {
	for name, cancels := range map[string]bool{"drained": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
				plans, reports := make(chan plan.Plan, 9), make(chan shutdown.Report, 9)
				n.opts.OnPlan = func(_ context.Context, p plan.Plan) { plans <- p }
				n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports <- r }
				n.run()
				n.host.Announce(source.Event{Kind: source.KindReboot, Deadline: time.Now().Add(20 * time.Second)})
				synctest.Wait()
				require.Len(t, plans, 1)
				require.Equal(t, map[string]int64{"web": 13, "etcd": 5}, granted(<-plans))
				require.Empty(t, reports)
				if cancels {
					n.host.Cancel()
				}
				n.advance(time.Minute)
				require.Empty(t, plans)
				require.Len(t, reports, 1)
				report := <-reports
				require.Equal(t, source.KindReboot, report.Kind)
				require.Equal(t, cancels, report.Cancelled)
				require.Equal(t, n.lastReport(), report)
			})
		})
	}
}
