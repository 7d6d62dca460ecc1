//go:build go1.25

package shutdown_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// On the next boot an agent returns the stored report, exports the times of the shutdown, reverts the node
// state, and admits pods.
func TestTheAgentOfTheNextBootShowsTheStoredReport(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.runOnBoot(one)
		began := time.Now()
		n.advance(time.Second)
		n.announce()
		n.advance(time.Minute)
		before := n.lastReport()
		n.end()

		n.host.SetPending(nil)
		reg := prometheus.NewPedanticRegistry()
		m, err := metrics.NewShutdown(reg, metrics.Options{})
		require.NoError(t, err)
		n.opts.Metrics = m
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		require.True(t, n.m.Admit(nil).Admit)
		require.Equal(t, float64(began.Unix()+1), metricValue(t, reg, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Equal(t, float64(began.Unix()+1), metricValue(t, reg, "kubelet_graceful_shutdown_end_time_seconds"))
		published := reporter.Published()
		require.False(t, published[len(published)-1].State.ShuttingDown)
		require.JSONEq(t, asJSON(t, before), asJSON(t, n.lastReport()))
	})
}

// If the machine goes down during a shutdown, the agent of the next boot reports the shutdown and does not
// resume it. It sends the final statuses of the signalled pods, unless the policy is LeaveAsIs.
func TestTheAgentOfTheNextBootDoesNotResumeTheShutdown(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy shutdown.PodPolicy
		after  time.Duration // the machine goes down
		want   []string
	}{
		{"while a pod waits for its mark", shutdown.PolicySetTerminal, 200 * time.Millisecond, []string{"hangs"}},
		{"while a pod hangs", shutdown.PolicySetTerminal, 10 * time.Second, []string{"hangs"}},
		{"while pods that are left as they are hang", shutdown.PolicyLeaveAsIs, 10 * time.Second, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			pods := list(shutdowntest.Pod("quick", 0, 60), shutdowntest.Pod("hangs", 0, 60), shutdowntest.Pod("spared", 0, 60))
			inBubbleWithState(t, pods, func(t *testing.T, n *node, one *boot) {
				c := &cluster{}
				n.opts.Reporter = hangingMarker{c}
				n.opts.Policy = func(source.Kind) shutdown.PodPolicy { return test.policy }
				n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true}}
				n.runOnBoot(one)
				n.announce()
				n.advance(test.after)
				n.crash()
				clear(c.final)
				n.host.SetPending(nil)
				n.runOnBoot(&boot{id: "two", began: time.Now()})
				require.True(t, n.m.Admit(nil).Admit)
				n.advance(time.Second)
				require.Equal(t, test.want, c.flushedPods())
				require.Empty(t, n.killer.Kills())
				require.Zero(t, n.lastReport().Ended)
				require.Contains(t, names(n.lastReport()), "hangs")
			})
		})
	}
}

// asJSON encodes a value, so that it equals one that was stored and has no monotonic times.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}
