//go:build go1.25

package shutdown_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// usePodsThatUseAllTheirGrace gives a node two pods that ask for more time than there is and use
// all that they are granted.
func usePodsThatUseAllTheirGrace(n *node) {
	n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
	n.setPods(shutdowntest.Pod("web", 0, 600), shutdowntest.Pod("etcd", topPriority, 600))
}

// setAllHooks sets the reporter and the volumes, so that a drain has more to do than the kills.
func setAllHooks(n *node) {
	n.opts.Reporter = &shutdowntest.Reporter{}
	n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { return nil })
	n.opts.Hold = func(context.Context) error { return nil }
}

// The requested delay covers all steps of a drain, and is at most Plan.Limit.
func TestTheRequestedDelayCoversAllSteps(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(n *node)
		want time.Duration
	}{
		"the kills alone":      {func(*node) {}, 32500 * time.Millisecond},
		"all hooks":            {setAllHooks, 52500 * time.Millisecond},
		"a platform of 30 s":   {func(n *node) { setAllHooks(n); n.opts.Plan.Limit = 30 * time.Second }, 30 * time.Second},
		"a platform of 2 min":  {func(n *node) { setAllHooks(n); n.opts.Plan.Limit = 2 * time.Minute }, 52500 * time.Millisecond},
		"a limit of less than": {func(n *node) { n.opts.Plan.Limit = -1 }, 0},
		"spans of one's own": {func(n *node) {
			setAllHooks(n)
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

// Inhibitor.Err is nil as long as each bucket keeps its time, even if other steps are shortened.
func TestALimitThatCoversTheBucketsIsNoError(t *testing.T) {
	for _, c := range []struct {
		limit   time.Duration
		hooks   bool
		trouble bool
	}{
		{30 * time.Second, false, false},
		{30*time.Second - 1, false, true},
		{30 * time.Second, true, false},
		{30*time.Second - 1, true, true},
	} {
		inBubble(t, nil, func(t *testing.T, n *node) {
			if c.hooks {
				setAllHooks(n)
				n.opts.Hold = nil
			}
			n.host.Limit = c.limit
			n.run()
			require.Equal(t, c.limit, n.m.Inhibitor().Granted)
			require.True(t, n.m.Inhibitor().Held)
			if c.trouble {
				require.ErrorContains(t, n.m.Inhibitor().Err, "at most")
				return
			}
			require.NoError(t, n.m.Inhibitor().Err)
			n.advance(10 * time.Minute)
			require.Empty(t, n.events.all(), "nothing is said of it")
		})
	}
}

// The drain grants each pod the seconds of the plan, under every limit.
func TestADrainGrantsTheSecondsOfThePlan(t *testing.T) {
	for _, hooks := range []bool{false, true} {
		for _, limit := range []time.Duration{0, 1, time.Second, 5 * time.Second, 10 * time.Second, 29 * time.Second, 30 * time.Second, 34 * time.Second, 52500 * time.Millisecond} {
			inBubble(t, nil, func(t *testing.T, n *node) {
				usePodsThatUseAllTheirGrace(n)
				if hooks {
					setAllHooks(n)
				}
				n.host.Limit = limit
				n.run()
				p := n.m.Plan()
				n.announce()
				n.advance(5 * time.Minute)
				for name, seconds := range granted(p) {
					require.GreaterOrEqual(t, n.grantedSeconds()[name], seconds, "%s, limit %v, hooks %v", name, limit, hooks)
				}
			})
		}
	}
}

// Manager.Plan applies the host's limit and Plan.Limit.
func TestPlanAppliesTheLimitsOfHostAndOptions(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		n.host.Limit = 12 * time.Second
		n.opts.Plan.Limit = 20 * time.Second
		n.run()
		require.Equal(t, map[string]int64{"web": 8, "etcd": 4}, granted(n.m.Plan()))
	})
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		n.opts.Plan.Limit = 20 * time.Second
		n.run()
		require.Equal(t, map[string]int64{"web": 13, "etcd": 6}, granted(n.m.Plan()))
	})
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		n.host.Limit = math.MaxInt64
		n.run()
		require.Equal(t, map[string]int64{"web": 20, "etcd": 10}, granted(n.m.Plan()), "a host without a limit")
	})
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		n.opts.Config = plan.Config{}
		n.run()
		require.Equal(t, map[string]int64{"web": 600, "etcd": 600}, granted(n.m.Plan()), "what a trigger would do")
	})
}

// Time that finished buckets left unused survives a restart: a pod of the resumed bucket gets all of it, or
// without roll-over the bucket's own time. A pod that was signalled before gets the rest of its grace
// period.
func TestAResumedDrainKeepsUnusedTime(t *testing.T) {
	for _, c := range []struct {
		noRollOver bool
		want       map[string]int64
	}{
		{false, map[string]int64{"etcd": 18, "new": 18}},
		{true, map[string]int64{"etcd": 3, "new": 10}},
	} {
		inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
			usePodsThatUseAllTheirGrace(n)
			n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 5 * time.Second}}
			n.opts.Plan.NoRollOver = c.noRollOver
			n.runOnBoot(one)
			n.announce()
			n.advance(10 * time.Second)
			n.end()

			n.killer = &shutdowntest.Killer{Default: shutdowntest.Behaviour{Takes: time.Hour}}
			n.opts.Killer = n.killer
			n.setPods(shutdowntest.Pod("etcd", topPriority, 600), shutdowntest.Pod("new", topPriority, 600))
			n.advance(2 * time.Second)
			n.runOnBoot(one)
			n.advance(5 * time.Minute)
			require.Equal(t, c.want, n.grantedSeconds())
		})
	}
}

// Also without roll-over, a resumed bucket ends when it was planned to end before the restart.
func TestAResumedDrainWithoutRollOverEndsOnTime(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		usePodsThatUseAllTheirGrace(n)
		n.opts.Plan.NoRollOver = true
		n.runOnBoot(one)
		n.announce()
		n.advance(15 * time.Second)
		n.end()

		n.killer = &shutdowntest.Killer{Default: shutdowntest.Behaviour{Takes: time.Hour}}
		n.opts.Killer = n.killer
		n.runOnBoot(one)
		n.advance(5 * time.Minute)
		require.Equal(t, map[string]int64{"web": 5, "etcd": 10}, n.grantedSeconds())
	})
}

// A second announcement begins another drain only if it leaves less time. That drain does not call Hold
// again.
func TestOnlyAnEventWithLessTimeBeginsAnotherDrain(t *testing.T) {
	for _, c := range []struct {
		deadline time.Duration
		holds    int
		granted  map[string]int64
	}{
		{20 * time.Minute, 1, map[string]int64{"web": 20, "etcd": 10}},
		{43 * time.Second, 1, map[string]int64{"web": 20, "etcd": 10}},
		{30 * time.Second, 1, map[string]int64{"web": 19, "etcd": 10}},
	} {
		inBubble(t, nil, func(t *testing.T, n *node) {
			usePodsThatUseAllTheirGrace(n)
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
			n.host.Announce(source.Event{Deadline: began.Add(c.deadline)})
			n.advance(5 * time.Minute)
			require.Equal(t, c.holds, holds, c.deadline)
			require.Equal(t, c.granted, n.grantedSeconds(), c.deadline)
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

// In a resumed drain the buckets end as before the restart, including the time of hooks. A pod that was
// signalled before gets the rest of its grace period.
func TestAResumedDrainKeepsTheEndsOfItsBuckets(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		usePodsThatUseAllTheirGrace(n)
		setAllHooks(n)
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
			n.killer = &shutdowntest.Killer{Default: shutdowntest.Behaviour{Takes: time.Hour}}
			n.opts.Killer = n.killer
			n.runOnBoot(one)
			n.advance(time.Second)
		}
		n.advance(5 * time.Minute)
		require.Equal(t, map[string]int64{"web": 7, "new": 7, "etcd": 14}, n.grantedSeconds(), "25 s is when the first bucket's pods had to be gone")
		require.Equal(t, 23*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 37*time.Second, n.lastReport().Ended.Sub(began))
	})
}
