//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Pods are refused, with the kubelet's texts, from the event until the host is gone.
func TestAdmit(t *testing.T) {
	pod := shutdowntest.Pod("web", 0, 5)
	inBubble(t, nil, func(t *testing.T, n *node) {
		reg := prometheus.NewPedanticRegistry()
		m, err := metrics.NewShutdown(reg, metrics.Options{})
		require.NoError(t, err)
		n.opts.Metrics = m
		n.run()
		require.Equal(t, shutdown.Admission{Admit: true}, n.m.Admit(pod))
		require.NoError(t, n.m.ShutdownStatus())
		n.announce()
		refused := shutdown.Admission{Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."}
		require.Equal(t, refused, n.m.Admit(pod))
		require.EqualError(t, n.m.ShutdownStatus(), "node is shutting down")
		n.advance(time.Hour)
		require.Equal(t, refused, n.m.Admit(pod))
		require.Equal(t, 2.0, metricValue(t, reg, "kubelet_graceful_shutdown_pods_refused_total"))
	})
}

// Admission is refused when Trigger returns, and open when its cancellation does.
func TestTriggerRefusesAtOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.opts.Source = nil
		n.run()
		for range 100 {
			require.NoError(t, n.m.Trigger(shutdown.Event{}))
			require.False(t, n.m.Admit(nil).Admit)
			require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true}))
			require.True(t, n.m.Admit(nil).Admit)
		}
	})
}

// Refuse, publish, kill: in this order, however slow the reporter is.
func TestRefuseThenPublishThenKill(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{PublishTakes: time.Second}
		n.opts.Reporter = reporter
		n.run()
		began := time.Now()
		n.announce()
		require.False(t, n.m.Admit(nil).Admit)
		require.Empty(t, n.killer.Kills(), "not before the node's state is known")
		n.advance(time.Second)
		require.Equal(t, time.Second, n.killedAfter("web", began))
		published := announcements(t, reporter)
		require.Len(t, published, 1)
		require.Equal(t, shutdown.NodeState{ShuttingDown: true, Since: began, Policy: shutdown.PolicySetTerminal}, published[0].State)
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds(), "publishing and final statuses take nothing from the pods")
	})
}

// Publishing is bounded by its timeout, and by less if the host's limit is short. The state is
// published later all the same.
func TestPublishIsBounded(t *testing.T) {
	for _, test := range []struct {
		name    string
		total   time.Duration
		limit   time.Duration
		timeout time.Duration
		want    time.Duration
	}{
		{"default", 40 * time.Second, 0, 0, 2 * time.Second},
		{"its own", 40 * time.Second, 0, 5 * time.Second, 5 * time.Second},
		{"a short limit", 4 * time.Second, 5 * time.Second, 0, 500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
				n.opts.Config = config(test.total, 0)
				n.opts.Plan.PublishTimeout, n.opts.Plan.Limit = test.timeout, test.limit
				reporter := &shutdowntest.Reporter{PublishTakes: time.Minute}
				n.opts.Reporter = reporter
				n.run()
				began := time.Now()
				n.announce()
				n.advance(2 * time.Minute)
				require.Equal(t, test.want, n.killedAfter("web", began))
				require.Contains(t, n.lastReport().Errors[0], "failed to publish the node state")
				require.True(t, announcements(t, reporter)[0].State.ShuttingDown)
			})
		})
	}
}

// A state that is refused is published again; one that is superseded is not.
func TestPublishAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{PublishErr: func(call int) error {
			if 1 <= call && call < 4 {
				return shutdowntest.ErrNotWaited
			}
			return nil
		}}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		n.advance(time.Minute)
		published := announcements(t, reporter)
		require.Len(t, published, 4)
		for _, p := range published[1:] {
			require.False(t, p.State.ShuttingDown)
		}
	})
}

// A call of PublishNode that hangs does not delay the state that reverts it.
func TestPublishIsSuperseded(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{PublishTakes: 900 * time.Millisecond}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		synctest.Wait()
		n.advance(time.Second)
		published := announcements(t, reporter)
		require.Error(t, published[0].Err)
		require.False(t, published[1].State.ShuttingDown)
		require.NoError(t, published[1].Err, "within a second")
	})
}

// A drain that overtakes another waits for the same publication, and reports its error.
func TestPublishForThreeDrains(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		n.opts.Reporter = &shutdowntest.Reporter{PublishTakes: time.Minute}
		n.run()
		began := time.Now()
		n.announce()
		for _, deadline := range []time.Duration{30 * time.Second, 29 * time.Second} {
			n.advance(500 * time.Millisecond)
			n.host.Announce(shutdown.Event{Deadline: time.Now().Add(deadline)})
		}
		n.advance(5 * time.Minute)
		require.Equal(t, 2*time.Second, n.killedAfter("web", began))
		require.Equal(t, []string{"failed to publish the node state: the time for it was spent"}, n.lastReport().Errors)
	})
}

// The state of one shutdown is published once, even if it was overtaken while the first drain asked
// for the pod policy.
func TestPublishedOnceWhereThePolicyIsSlow(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{PublishTakes: 500 * time.Millisecond}
		n.opts.Reporter = reporter
		asked := 0
		n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy {
			if asked++; asked == 1 {
				<-time.After(800 * time.Millisecond)
			}
			return shutdown.PolicySetTerminal
		}
		n.run()
		n.announce()
		n.advance(500 * time.Millisecond)
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(30 * time.Second)})
		n.advance(time.Minute)
		require.Len(t, announcements(t, reporter), 1)
		require.Empty(t, n.lastReport().Errors)
	})
}

// Each drain stops waiting for a reporter that ignores its context.
func TestDeafPublish(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		reporter := &deafReporter{over: make(chan struct{})}
		n.opts.Reporter = reporter
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Second)
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(30 * time.Second)})
		n.advance(time.Minute)
		require.Equal(t, 2*time.Second, n.killedAfter("web", began))
		close(reporter.over)
	})
}

// deafReporter ignores its context: its calls return when the test releases them.
type deafReporter struct{ over chan struct{} }

func (r *deafReporter) PublishNode(_ context.Context, state shutdown.NodeState) error {
	if state.ShuttingDown {
		<-r.over
	}
	return nil
}
