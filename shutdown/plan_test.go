//go:build go1.25

package shutdown_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// useGreedyPods gives a node two pods that request more time than there is and use all that they get.
func useGreedyPods(n *node) {
	n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
	n.setPods(shutdowntest.Pod("web", 0, 600), shutdowntest.Pod("etcd", topPriority, 600))
}

// enableAllSteps gives a drain all steps but Prepare.
func enableAllSteps(n *node) {
	n.opts.Reporter = &shutdowntest.Reporter{}
	n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { return nil })
	n.opts.Hold = func(context.Context) error { return nil }
}

// The requested delay covers all steps of a drain, and is at most Plan.Limit. With all steps these are 20 s
// more: 10 s for Hold, 2 s for publishing, and for each of the two buckets 1 s for marks, 2 s for volumes and
// 1 s for final statuses.
func TestTheRequestedDelayCoversAllSteps(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(n *node)
		want time.Duration
	}{
		"the kills alone":  {func(*node) {}, 32500 * time.Millisecond},
		"all steps":        {enableAllSteps, 52500 * time.Millisecond},
		"a limit of 30 s":  {func(n *node) { enableAllSteps(n); n.opts.Plan.Limit = 30 * time.Second }, 30 * time.Second},
		"a limit of 2 min": {func(n *node) { enableAllSteps(n); n.opts.Plan.Limit = 2 * time.Minute }, 52500 * time.Millisecond},
		"a negative limit": {func(n *node) { n.opts.Plan.Limit = -1 }, 0},
		"other timeouts": {func(n *node) {
			enableAllSteps(n)
			n.opts.Plan.HoldTimeout, n.opts.Plan.PublishTimeout = time.Second, -1
		}, 41500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				c.set(n)
				n.run()
				require.Equal(t, []time.Duration{c.want}, n.host.RequestedDelays())
			})
		})
	}
}

// A host that grants the 30 s of the buckets, but not the time of the other steps, is no error in
// Inhibitor.Err and no warning. One nanosecond less is.
func TestALimitThatCoversTheBucketsIsNoError(t *testing.T) {
	for name, c := range map[string]struct {
		limit    time.Duration
		allSteps bool
		isError  bool
	}{
		"kills only, long enough": {limit: 30 * time.Second},
		"kills only, too short":   {limit: 30*time.Second - 1, isError: true},
		"all steps, long enough":  {limit: 30 * time.Second, allSteps: true},
		"all steps, too short":    {limit: 30*time.Second - 1, allSteps: true, isError: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				if c.allSteps {
					enableAllSteps(n)
					n.opts.Hold = nil
				}
				n.host.Limit = c.limit
				n.run()
				require.Equal(t, c.limit, n.m.Inhibitor().Granted)
				require.True(t, n.m.Inhibitor().Held)
				if c.isError {
					require.ErrorContains(t, n.m.Inhibitor().Err, "at most")
					return
				}
				require.NoError(t, n.m.Inhibitor().Err)
				n.advance(10 * time.Minute)
				require.Empty(t, n.events.all(), "no warning")
			})
		})
	}
}

// The drain grants each pod at least the seconds of the plan, whatever the host grants.
func TestADrainGrantsTheSecondsOfThePlan(t *testing.T) {
	for steps, enable := range map[string]func(n *node){"kills only": func(*node) {}, "all steps": enableAllSteps} {
		for _, limit := range []time.Duration{0, 1, time.Second, 5 * time.Second, 10 * time.Second, 29 * time.Second, 30 * time.Second, 34 * time.Second, 52500 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s, limit %v", steps, limit), func(t *testing.T) {
				inBubble(t, nil, func(t *testing.T, n *node) {
					useGreedyPods(n)
					enable(n)
					n.host.Limit = limit
					n.run()
					p := n.m.Plan()
					n.announce()
					n.advance(5 * time.Minute)
					for name, seconds := range granted(p) {
						require.GreaterOrEqual(t, n.grantedSeconds()[name], seconds, name)
					}
				})
			})
		}
	}
}

// Manager.Plan applies the host's limit and Plan.Limit.
func TestPlanAppliesTheLimitsOfHostAndOptions(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(n *node)
		want map[string]int64
	}{
		"the host's limit is shorter": {func(n *node) { n.host.Limit, n.opts.Plan.Limit = 12*time.Second, 20*time.Second }, map[string]int64{"web": 8, "etcd": 4}},
		"Plan.Limit is shorter":       {func(n *node) { n.opts.Plan.Limit = 20 * time.Second }, map[string]int64{"web": 13, "etcd": 6}},
		"a host without a limit":      {func(n *node) { n.host.Limit = math.MaxInt64 }, map[string]int64{"web": 20, "etcd": 10}},
		"no schedule":                 {func(n *node) { n.opts.Config = plan.Config{} }, map[string]int64{"web": 600, "etcd": 600}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				useGreedyPods(n)
				c.set(n)
				n.run()
				require.Equal(t, c.want, granted(n.m.Plan()))
			})
		})
	}
}

// An agent ends after 10 s of a drain, in the second bucket, and the next one starts 2 s later. The first
// bucket has left 15 s. A new pod gets the 18 s until the end of the buckets at 30 s, or without roll-over
// the 10 s of its bucket. etcd was killed at 5 s, and gets what is left of that: 18 s, or 3 s of 10 s.
func TestAResumedDrainKeepsUnusedTime(t *testing.T) {
	for name, c := range map[string]struct {
		noRollOver bool
		want       map[string]int64
	}{
		"with roll-over":    {noRollOver: false, want: map[string]int64{"etcd": 18, "new": 18}},
		"without roll-over": {noRollOver: true, want: map[string]int64{"etcd": 3, "new": 10}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
				useGreedyPods(n)
				n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 5 * time.Second}}
				n.opts.Plan.NoRollOver = c.noRollOver
				n.runOnBoot(one)
				n.announce()
				n.advance(10 * time.Second)
				n.end()

				n.replaceKiller()
				n.setPods(shutdowntest.Pod("etcd", topPriority, 600), shutdowntest.Pod("new", topPriority, 600))
				n.advance(2 * time.Second)
				n.runOnBoot(one)
				n.advance(5 * time.Minute)
				require.Equal(t, c.want, n.grantedSeconds())
			})
		})
	}
}

// Also without roll-over, a resumed bucket ends as planned: after 15 s of 20 s, web gets 5 s.
func TestAResumedDrainWithoutRollOverEndsOnTime(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		useGreedyPods(n)
		n.opts.Plan.NoRollOver = true
		n.runOnBoot(one)
		n.announce()
		n.advance(15 * time.Second)
		n.end()

		n.replaceKiller()
		n.runOnBoot(one)
		n.advance(5 * time.Minute)
		require.Equal(t, map[string]int64{"web": 5, "etcd": 10}, n.grantedSeconds())
	})
}

// Hold hangs when a second announcement comes after 1 s. If that leaves the 42.5 s that all steps need,
// nothing changes. With only 30 s, Hold ends at once and web loses the second that has passed. Hold is not
// called again.
func TestOnlyAnEventWithLessTimeBeginsAnotherDrain(t *testing.T) {
	for deadline, want := range map[time.Duration]map[string]int64{
		20 * time.Minute: {"web": 20, "etcd": 10},
		43 * time.Second: {"web": 20, "etcd": 10},
		30 * time.Second: {"web": 19, "etcd": 10},
	} {
		t.Run(deadline.String(), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				useGreedyPods(n)
				holds := 0
				n.opts.Hold = func(ctx context.Context) error {
					holds++
					<-ctx.Done()
					return context.Cause(ctx)
				}
				n.run()
				began := time.Now()
				n.host.Announce(source.Event{Deadline: began.Add(30 * time.Minute)})
				n.advance(time.Second)
				n.host.Announce(source.Event{Deadline: began.Add(deadline)})
				n.advance(5 * time.Minute)
				require.Equal(t, 1, holds)
				require.Equal(t, want, n.grantedSeconds())
			})
		})
	}
}

// An event without a deadline takes no time from the current drain.
func TestAnEventWithoutADeadlineShortensNothing(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Source = nil
		n.killer.Default = shutdowntest.Behaviour{Takes: 10 * time.Second}
		n.run()
		began := time.Now()
		require.NoError(t, n.m.Trigger(source.Event{Origin: "first"}))
		n.advance(2 * time.Second)
		require.NoError(t, n.m.Trigger(source.Event{Origin: "second"}))
		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 2)
		require.Equal(t, "first", n.lastReport().Origin)
		require.False(t, n.lastReport().Cancelled)
		require.Equal(t, 20*time.Second, n.lastReport().Ended.Sub(began))
	})
}

// In a drain that is resumed twice, after 15 s and 16 s, the buckets still end as planned, including the time
// of the other steps. web, killed before, gets the rest of its grace period.
func TestAResumedDrainKeepsTheEndsOfItsBuckets(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		useGreedyPods(n)
		enableAllSteps(n)
		n.opts.Hold = nil
		n.runOnBoot(one)
		began := time.Now()
		n.announce()
		n.advance(15 * time.Second)
		var pods []*v1.Pod // that the next agent finds
		for range 2 {      // the third agent resumes from what the second one has stored
			n.end()
			n.setPods(append(n.currentPods(), pods...)...)
			pods = list(shutdowntest.Pod("new", 0, 7))
			n.replaceKiller()
			n.runOnBoot(one)
			n.advance(time.Second)
		}
		n.advance(5 * time.Minute)
		require.Equal(t, map[string]int64{"web": 7, "new": 7, "etcd": 14}, n.grantedSeconds(), "the first bucket's pods have until 25 s")
		require.Equal(t, 23*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 37*time.Second, n.lastReport().Ended.Sub(began))
	})
}
