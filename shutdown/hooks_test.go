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

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// volumes is a VolumeWaiter whose only method calls this function.
type volumes func(ctx context.Context, pods []*v1.Pod) error

// WaitForAllPodsUnmount calls the function.
func (v volumes) WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error {
	return v(ctx, pods)
}

// Publishing hangs, and Hold returns at once, which leaves its 10 s unused. The first kill waits only for the 2 s
// of publishing.
func TestPublishingDoesNotGetTheTimeOfTheHold(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
		n.opts.Hold = func(context.Context) error { return nil }
		n.opts.Reporter = reporterWithoutMarks{&shutdowntest.Reporter{PublishTakes: time.Hour}}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 2*time.Second, n.killedAfter("web", began))
	})
}

// OnRelease is called when the drain is over and the lock is still held. It panics. The pod ends at once, so the drain is over
// at once too, and the stored report has the panic.
func TestAPanicOfOnReleaseIsStored(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node, thisBoot *boot) {
		n.opts.OnRelease = func(context.Context) {
			require.Equal(t, 1, n.host.Held(), "the lock is still held")
			panic("nobody listens")
		}
		n.runOnBoot(thisBoot)
		n.announce()
		stored := n.storedReport()
		require.Len(t, stored.Errors, 1)
		require.Contains(t, stored.Errors[0], "nobody listens")
		require.NotZero(t, stored.Ended)
		require.Zero(t, n.host.Held(), "the lock is released")
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
		{name: "Prepare is cancelled", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.Prepare = func(ctx context.Context) error { <-ctx.Done(); return errBoom }
		}, cancel: true},
		{name: "OnRelease hangs", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.OnRelease = func(ctx context.Context) { <-ctx.Done() }
		}, want: []string{"OnRelease did not return in time"}},
		{name: "publishing fails", change: func(_ *node, r *shutdowntest.Reporter) {
			r.PublishErr = func(int) error { return errBoom }
		}, want: []string{"failed to publish the node state: boom"}},
	} {
		subtestInBubble(t, test.name, webAndEtcd(), func(t *testing.T, n *node) {
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
	}
}

// OnPlan gets the plan when a drain begins, and OnReport the report when the drain is over or cancelled. Each is called
// once.
func TestOnPlanIsCalledAtTheBeginningAndOnReportAtTheEnd(t *testing.T) {
	for name, cancels := range map[string]bool{"drained": false, "cancelled": true} {
		subtestInBubble(t, name, list(shutdowntest.Pod("web", regularPriority, 60), shutdowntest.Pod("etcd", criticalPriority, 5)), func(t *testing.T, n *node) {
			n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
			plans, reports := make(chan plan.Plan, 9), make(chan shutdown.Report, 9)
			n.opts.OnPlan = func(_ context.Context, p plan.Plan) { plans <- p }
			n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports <- r }
			n.run()
			n.host.Announce(source.Event{Kind: source.KindReboot, Deadline: time.Now().Add(20 * time.Second)})
			synctest.Wait()
			require.Len(t, plans, 1, "the drain has begun")
			// 2/3 and 1/3 of the 20 s until the deadline, in whole seconds; etcd has a grace period of 5 s.
			require.Equal(t, map[string]int64{"web": 13, "etcd": 5}, granted(<-plans))
			require.Empty(t, reports, "it is not over")
			if cancels {
				n.host.Cancel()
			}
			n.advance(time.Minute)
			require.Empty(t, plans, "OnPlan was called once")
			require.Len(t, reports, 1)
			report := <-reports
			require.Equal(t, source.KindReboot, report.Kind)
			require.Equal(t, cancels, report.Cancelled)
			require.Equal(t, n.lastReport(), report)
		})
	}
}

// The manager requests 2 s for Prepare, which runs before the pods are listed: 32.5 s + 2 s = 34.5 s. What Prepare does not use is
// left to web. A Prepare that hangs is given up after 2 s.
func TestPrepareRunsBeforeThePodsAreListed(t *testing.T) {
	hangs := []string{"Prepare did not return in time"}
	for name, test := range map[string]struct {
		limit   time.Duration // how long the host waits
		takes   time.Duration // how long Prepare takes
		listed  time.Duration // when the pods are listed, after the announcement
		granted map[string]int64
		errs    []string
	}{
		"Prepare takes no time": {limit: time.Minute, listed: 0, granted: map[string]int64{"web": 20 + 2, "etcd": 10}},
		"Prepare takes 1.5 s":   {limit: time.Minute, takes: 1500 * time.Millisecond, listed: 1500 * time.Millisecond, granted: map[string]int64{"web": 20 /* of 20.5 s */, "etcd": 10}},
		"Prepare hangs":         {limit: time.Minute, takes: time.Hour, listed: 2 * time.Second, granted: map[string]int64{"web": 20, "etcd": 10}, errs: hangs},
		// 11 s are left: two thirds give web 7 whole seconds, and etcd has the other 4 s.
		"Prepare hangs, the host waits 13 s": {limit: 13 * time.Second, takes: time.Hour, listed: 2 * time.Second, granted: map[string]int64{"web": 7, "etcd": 4}, errs: hangs},
	} {
		subtestInBubble(t, name, noPods(), func(t *testing.T, n *node) {
			setPodsThatUseAllTheirTime(n)
			n.opts.Prepare = func(ctx context.Context) error { return times.Sleep(ctx, test.takes) }
			var listed []time.Time
			n.opts.ListPods = shutdown.ListPodsFunc(func() []*v1.Pod {
				listed = append(listed, time.Now())
				return n.currentPods()
			}, nil)
			n.run()
			require.Equal(t, []time.Duration{34500 * time.Millisecond}, n.host.RequestedDelays())

			began := time.Now()
			n.host.Announce(source.Event{Deadline: began.Add(test.limit)})
			n.advance(2 * time.Minute)
			require.Equal(t, test.listed, listed[0].Sub(began))
			require.Equal(t, test.granted, n.grantedSeconds())
			require.Equal(t, test.errs, n.lastReport().Errors)
			require.LessOrEqual(t, n.releasedAfter(began), test.limit)
		})
	}
}

// With a negative PublishTimeout no drain waits for PublishNode. Each agent also calls it once at its start: this call, which takes 1 s
// here, is not cut off.
func TestPublishingHasTimeEvenIfNoDrainWaitsForIt(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.opts.Plan.PublishTimeout = -1
		server := &flakyPublisher{takes: time.Second}
		n.opts.Reporter = server
		n.run()
		n.advance(2 * time.Second)
		require.Equal(t, 1, server.published, "PublishNode was not cut off")
	})
}

// flakyPublisher is a reporter whose first calls fail, and whose later calls take some time.
type flakyPublisher struct {
	takes     time.Duration
	fails     int // how many calls fail
	published int // how many calls have succeeded
}

// PublishNode fails p.fails times. Later calls take p.takes, and are counted when they succeed.
func (p *flakyPublisher) PublishNode(ctx context.Context, _ shutdown.NodeState) error {
	if p.fails > 0 {
		p.fails--
		return errors.New("boom")
	}
	err := times.Sleep(ctx, p.takes)
	if err == nil {
		p.published++
	}
	return err
}

// The host announces a shutdown whose deadline has passed, and Prepare hangs. All pods are killed nevertheless, with 0 s.
func TestAPrepareThatHangsDoesNotSaveThePods(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.opts.Prepare = func(ctx context.Context) error { return times.Sleep(ctx, time.Hour) }
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.host.Announce(source.Event{Deadline: time.Now().Add(-time.Second)})
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 0, "etcd": 0}, n.grantedSeconds())
	})
}
