//go:build go1.25

package shutdown_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// setPodsThatUseAllTheirTime gives a node the pods web and etcd, which request 600 s, more than there is, and use all that they get.
func setPodsThatUseAllTheirTime(n *node) {
	n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
	n.setPods(shutdowntest.Pod("web", regularPriority, 600), shutdowntest.Pod("etcd", criticalPriority, 600))
}

// setAllStepsButPrepare gives a drain all steps but Prepare: it publishes the node state, calls Hold, marks pods as not ready, waits
// for volumes, and sends final statuses.
func setAllStepsButPrepare(n *node) {
	n.opts.Reporter = &shutdowntest.Reporter{}
	n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { return nil })
	n.opts.Hold = func(context.Context) error { return nil }
}

// The requested delay covers the kills and all other steps of a drain, and is at most Plan.Limit.
func TestTheRequestedDelayCoversAllSteps(t *testing.T) {
	const (
		kills      = 32500 * time.Millisecond // the 30 s of the schedule, 2 s for containers that have used up their grace period, and the margin of 500 ms
		publishing = 2 * time.Second
		hold       = 10 * time.Second
		buckets    = 2 * 4 * time.Second // for each of the two buckets: 1 s to mark its pods as not ready, 2 s for volumes, 1 s for final statuses
	)
	for name, c := range map[string]struct {
		set  func(n *node)
		want time.Duration
	}{
		"the kills alone":       {set: func(*node) {}, want: kills},
		"all steps but Prepare": {set: setAllStepsButPrepare, want: kills + publishing + hold + buckets},
		"a limit of 30 s":       {set: func(n *node) { setAllStepsButPrepare(n); n.opts.Plan.Limit = 30 * time.Second }, want: 30 * time.Second},
		"a limit of 2 min":      {set: func(n *node) { setAllStepsButPrepare(n); n.opts.Plan.Limit = 2 * time.Minute }, want: kills + publishing + hold + buckets},
		"a negative limit":      {set: func(n *node) { n.opts.Plan.Limit = -1 }, want: 0},
		"1 s for Hold":          {set: func(n *node) { setAllStepsButPrepare(n); n.opts.Plan.HoldTimeout = time.Second }, want: kills + publishing + time.Second + buckets},
		"no publishing":         {set: func(n *node) { setAllStepsButPrepare(n); n.opts.Plan.PublishTimeout = -1 }, want: kills + hold + buckets},
	} {
		subtestInBubble(t, name, noPods(), func(t *testing.T, n *node) {
			c.set(n)
			n.run()
			require.Equal(t, []time.Duration{c.want}, n.host.RequestedDelays())
		})
	}
}

// A host that grants the 30 s of the buckets, but no time for the other steps, causes neither an error in
// Inhibitor.Err nor a warning event. If it grants one nanosecond less, there are both.
func TestALimitThatCoversTheBucketsIsNoError(t *testing.T) {
	for name, c := range map[string]struct {
		limit          time.Duration
		withOtherSteps bool
		isError        bool
	}{
		"kills only, long enough":            {limit: 30 * time.Second},
		"kills only, too short":              {limit: 30*time.Second - 1, isError: true},
		"all steps but Prepare, long enough": {limit: 30 * time.Second, withOtherSteps: true},
		"all steps but Prepare, too short":   {limit: 30*time.Second - 1, withOtherSteps: true, isError: true},
	} {
		subtestInBubble(t, name, noPods(), func(t *testing.T, n *node) {
			if c.withOtherSteps {
				setAllStepsButPrepare(n)
			}
			n.host.Limit = c.limit
			n.run()
			require.Equal(t, c.limit, n.m.Inhibitor().Granted)
			require.True(t, n.m.Inhibitor().Held)
			if c.isError {
				require.ErrorContains(t, n.m.Inhibitor().Err, "at most")
				require.Equal(t, []string{"Warning Shutdown " + n.m.Inhibitor().Err.Error()}, n.events.all())
				return
			}
			require.NoError(t, n.m.Inhibitor().Err)
			n.advance(10 * time.Minute)
			require.Empty(t, n.events.all(), "no warning")
		})
	}
}

// Manager.Plan applies the host's limit or Plan.Limit, whichever is shorter. web and etcd have grace periods of 600 s
// (setPodsThatUseAllTheirTime), and plain has none. The two buckets get 2/3 and 1/3 of the limit, in whole seconds. Without a schedule each
// pod has its own grace period, or 30 s if it has none.
func TestPlanAppliesTheLimitsOfHostAndOptions(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(n *node)
		want map[string]int64
	}{
		"the host's limit is shorter": {func(n *node) { n.host.Limit, n.opts.Plan.Limit = 12*time.Second, 20*time.Second }, map[string]int64{"web": 8, "plain": 8, "etcd": 4}},
		"Plan.Limit is shorter":       {func(n *node) { n.opts.Plan.Limit = 20 * time.Second }, map[string]int64{"web": 13, "plain": 13, "etcd": 6}},
		"a host without a limit":      {func(n *node) { n.host.Limit = math.MaxInt64 }, map[string]int64{"web": 20, "plain": 20, "etcd": 10}},
		"no schedule":                 {func(n *node) { n.opts.Config = plan.Config{} }, map[string]int64{"web": 600, "plain": 30, "etcd": 600}},
	} {
		subtestInBubble(t, name, noPods(), func(t *testing.T, n *node) {
			setPodsThatUseAllTheirTime(n)
			n.setPods(append(n.currentPods(), shutdowntest.Pod("plain", regularPriority, noGrace))...)
			c.set(n)
			n.run()
			require.Equal(t, c.want, granted(n.m.Plan()))
		})
	}
}

// A second announcement comes 1 s after the first, while Hold (10 s) is under way. Hold and the kills take 42.5 s: 10 s, the 30 s of the
// buckets, 2 s for containers that have used up their grace period, and the margin of 500 ms. If the new deadline leaves less, Hold is cut
// off at once, is not called again, and the kills begin. Otherwise nothing changes.
func TestOnlyAnEarlierDeadlineShortensADrain(t *testing.T) {
	for name, c := range map[string]struct {
		deadline time.Duration // after the first announcement
		want     map[string]int64
	}{
		"20 min: far more than the drain needs":                     {deadline: 20 * time.Minute, want: map[string]int64{"web": 20, "etcd": 10}},
		"43 s: enough for Hold and the kills":                       {deadline: 43 * time.Second, want: map[string]int64{"web": 20, "etcd": 10}},
		"30 s, of which 1 s has passed: less than the buckets have": {deadline: 30 * time.Second, want: map[string]int64{"web": 20 - 1, "etcd": 10}},
	} {
		subtestInBubble(t, name, noPods(), func(t *testing.T, n *node) {
			setPodsThatUseAllTheirTime(n)
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
			require.Equal(t, 1, holds)
			require.Equal(t, c.want, n.grantedSeconds())
		})
	}
}

// ListPods hangs. Plan returns after 1 s, with a warning, and has ended the context of ListPods. If ListPods ignores its
// context, the error of Run names it.
func TestAPlanLeavesNoCallBehind(t *testing.T) {
	for name, ignoresContext := range map[string]bool{"ListPods returns when its context ends": false, "ListPods ignores its context": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t, nil)
				returned := make(chan struct{}, 1)
				release := make(chan struct{})
				n.opts.ListPods = func(ctx context.Context) ([]*v1.Pod, error) {
					<-ctx.Done()
					if ignoresContext {
						<-release
					}
					returned <- struct{}{}
					return nil, nil
				}
				n.run()
				began := time.Now()
				require.Contains(t, n.m.Plan().Warnings, "the plan has no pods: Options.ListPods did not return within 1s")
				require.Equal(t, time.Second, time.Since(began))
				synctest.Wait()
				n.stop()
				if ignoresContext {
					require.EqualError(t, <-n.ended, "calls that have not returned: Options.ListPods")
					close(release)
				} else {
					require.Len(t, returned, 1, "ListPods has returned before Run ends")
					require.NoError(t, <-n.ended)
				}
			})
		})
	}
}
