//go:build go1.25

package shutdown_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// runOnNextBoot starts a manager after a reboot: no shutdown is pending, and the boot has the ID "next".
func (n *node) runOnNextBoot() {
	n.t.Helper()
	n.host.SetPending(nil)
	n.runOnBoot(&boot{id: "next", began: time.Now()})
}

// reportOfNextBoot ends the agent, starts one on the next boot, and returns the report that this one has read.
func (n *node) reportOfNextBoot() shutdown.Report {
	n.t.Helper()
	n.end()
	n.runOnNextBoot()
	return n.lastReport()
}

// The report has the grace period, the times, the outcome and the error of each kill. web uses the 20 s of its bucket, the kill
// of broken fails after 2 s and is not retried, and etcd ends at once, at 20 s. There is no report before the drain is over.
func TestTheReportHasEachKill(t *testing.T) {
	pods := list(shutdowntest.Pod("web", regularPriority, 60), shutdowntest.Pod("broken", regularPriority, 5), shutdowntest.Pod("etcd", criticalPriority, 60))
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{
			"web":    {Takes: time.Hour},
			"broken": {Takes: 2 * time.Second, Err: fmt.Errorf("no such sandbox: %w", shutdown.ErrNoRetry)},
		}
		n.run()
		began := time.Now()
		n.host.Announce(source.Event{Kind: source.KindReboot, Origin: "logind"})
		synctest.Wait()
		_, ok := n.m.LastReport()
		require.False(t, ok, "the drain is not over")
		n.advance(time.Minute)
		at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
		require.Equal(t, shutdown.Report{
			Kind: source.KindReboot, Origin: "logind", Started: began, Ended: at(20),
			Pods: []shutdown.PodReport{
				{Namespace: "default", Name: "web", UID: "uid-web", GrantedSeconds: 20, Started: began, Ended: at(20), Outcome: "GraceExceeded"},
				// The fake killer returns the outcome Graceful beside the error.
				{Namespace: "default", Name: "broken", UID: "uid-broken", GrantedSeconds: 5, Started: began, Outcome: "Graceful", Error: "no such sandbox: the kill is not retried"},
				{Namespace: "default", Name: "etcd", UID: "uid-etcd", Priority: criticalPriority, Bucket: criticalPriority, GrantedSeconds: 10, Started: at(20), Ended: at(20), Outcome: "Graceful"},
			},
		}, n.lastReport())
	})
}

// The stored report has the pods from the first kill on, and an end when the drain is over. The pod named stuck outlasts the drain,
// and the report gets the end of that pod later. The agents of the next two boots read that report.
func TestTheStoredReportFollowsTheShutdown(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", regularPriority, 60), shutdowntest.Pod("stuck", regularPriority, 5)), func(t *testing.T, n *node, thisBoot *boot) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 5 * time.Second}, "stuck": {Hangs: true, IgnoresContext: true}}
		n.runOnBoot(thisBoot)
		n.announce()
		n.advance(time.Second)
		require.Len(t, n.storedReport().Pods, 2)
		require.Zero(t, n.storedReport().Ended, "the drain is under way")

		n.advance(time.Minute)
		require.JSONEq(t, asJSON(t, n.lastReport()), asJSON(t, n.storedReport()))
		require.NotZero(t, n.storedReport().Ended, "the drain is over")
		require.Zero(t, podReport(t, n.storedReport(), "stuck").Ended)

		n.killer.Release()
		n.advance(time.Second)
		stored := n.storedReport()
		require.NotZero(t, podReport(t, stored, "stuck").Ended)
		for range 2 { // boots
			require.JSONEq(t, asJSON(t, stored), asJSON(t, n.reportOfNextBoot()))
		}
	})
}

// The metrics show whether the lock is held, the delay (the host grants 31 s of the requested 32.5 s), the start and the end of the
// shutdown, and how the pods ended. The drain takes 30 s: slow uses the time of both buckets, because web ends at once.
func TestMetricsFollowTheShutdown(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5), shutdowntest.Pod("slow", criticalPriority, 60)), func(t *testing.T, n *node) {
		reg := n.useMetrics()
		n.host.Limit = 31 * time.Second
		n.killer.Pods = map[string]shutdowntest.Behaviour{"slow": {Takes: time.Hour}}
		n.run()
		require.Equal(t, 1.0, metricValue(t, reg, "kubelet_graceful_shutdown_inhibitor_held"))
		require.Equal(t, map[string]float64{"requested": 32.5, "granted": 31}, metricByLabel(t, reg, "kubelet_graceful_shutdown_delay_seconds"))

		began := time.Now()
		n.announce()
		require.Equal(t, float64(began.Unix()), metricValue(t, reg, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Zero(t, metricValue(t, reg, "kubelet_graceful_shutdown_end_time_seconds"), "the drain is under way")

		n.advance(time.Minute)
		require.Equal(t, float64(began.Unix()+30), metricValue(t, reg, "kubelet_graceful_shutdown_end_time_seconds"))
		require.Zero(t, metricValue(t, reg, "kubelet_graceful_shutdown_inhibitor_held"), "the lock is released")
		require.Equal(t, map[string]float64{"Graceful": 1, "GraceExceeded": 1}, metricByLabel(t, reg, "kubelet_graceful_shutdown_pods_total"))
		buckets, seconds := histogram(t, reg, "kubelet_graceful_shutdown_bucket_duration_seconds")
		require.Equal(t, uint64(2), buckets)
		require.Equal(t, 0.0+30.0, seconds, "web's bucket and slow's")
		problems, err := testutil.GatherAndLint(reg)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}

// A pod that is refused during a shutdown is counted. After the cancellation the metrics show the new lock, until Run ends.
func TestMetricsShowRefusedPodsAndTheNewLock(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		reg := n.useMetrics()
		n.run()
		n.announce()
		require.False(t, n.admitsNewPods())
		require.Equal(t, 1.0, metricValue(t, reg, "kubelet_graceful_shutdown_pods_refused_total"))

		n.host.Cancel()
		synctest.Wait()
		require.Equal(t, 1.0, metricValue(t, reg, "kubelet_graceful_shutdown_inhibitor_held"))
		n.end()
		require.Zero(t, metricValue(t, reg, "kubelet_graceful_shutdown_inhibitor_held"))
	})
}

// useMetrics gives the next manager metrics, and returns their registry.
func (n *node) useMetrics() *prometheus.Registry {
	n.t.Helper()
	reg := prometheus.NewPedanticRegistry()
	var err error
	n.opts.Metrics, err = metrics.NewShutdown(reg, metrics.Options{})
	require.NoError(n.t, err)
	return reg
}

// A pod is counted under the killer's outcome, even if the killer also returned an error. Without an outcome it is
// counted as Ended, or as Failed if there is an error.
func TestPodsAreCountedByOutcome(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("good", regularPriority, 5), shutdowntest.Pod("fine", regularPriority, 5), shutdowntest.Pod("bad", regularPriority, 5), shutdowntest.Pod("stuck", regularPriority, 5)), func(t *testing.T, n *node) {
		reg := n.useMetrics()
		n.opts.Killer = shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, _ shutdown.KillRequest) (shutdown.KillResult, error) {
			switch pod.Name {
			case "bad":
				return shutdown.KillResult{}, fmt.Errorf("no runtime: %w", shutdown.ErrNoRetry)
			case "stuck":
				return shutdown.KillResult{Outcome: "RuntimeStuck"}, fmt.Errorf("no answer: %w", shutdown.ErrNoRetry)
			default:
				return shutdown.KillResult{}, nil
			}
		})
		n.run()
		n.announce()
		require.Equal(t, map[string]float64{"Ended": 2, "Failed": 1, "RuntimeStuck": 1}, metricByLabel(t, reg, "kubelet_graceful_shutdown_pods_total"))
	})
}

// metricByLabel returns the values of a metric by the value of its only label.
func metricByLabel(t *testing.T, reg prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			values[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values
}

// histogram returns the number and the sum of the observations of a histogram.
func histogram(t *testing.T, reg prometheus.Gatherer, name string) (count uint64, sum float64) {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			h := family.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), h.GetSampleSum()
		}
	}
	return 0, 0
}

// The agent of the next boot reads the report that the previous one has stored: LastReport returns it, and the metrics have the times of
// that shutdown. The agent reverts the node's state, and admits pods.
func TestTheAgentOfTheNextBootShowsTheStoredReport(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.runOnBoot(thisBoot)
		n.advance(time.Second)
		announced := time.Now()
		n.announce()
		n.advance(time.Minute)
		before := n.lastReport()
		n.end()

		reg := n.useMetrics()
		n.runOnNextBoot()
		require.True(t, n.admitsNewPods())
		require.Equal(t, float64(announced.Unix()), metricValue(t, reg, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Equal(t, float64(announced.Unix()), metricValue(t, reg, "kubelet_graceful_shutdown_end_time_seconds"), "the pods end at once")
		published := reporter.Published()
		require.False(t, published[len(published)-1].ShuttingDown)
		require.JSONEq(t, asJSON(t, before), asJSON(t, n.lastReport()))
	})
}

// asJSON encodes a value, to compare it with one that was read from the disk. In JSON times have no monotonic clock
// readings, which only the value in memory has.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// web never ends. A shutdown begins at 0 s, gives web 5 s, and is cancelled at 1 s. A second one begins at 2 s and ends at 7 s.
// A shutdown whose pods still run is reported 10 s after it has ended and their grace periods are over: the first one at 15 s, and
// the second later. At 15 s OnReport has got only the report of the first, but LastReport returns that of the second, which began
// later.
func TestLastReportIsThatOfTheLatestShutdown(t *testing.T) {
	inBubble(t, []*v1.Pod{shutdowntest.Pod("web", regularPriority, 5)}, func(t *testing.T, n *node) {
		var reported []source.Kind
		n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reported = append(reported, r.Kind) }
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.run()
		n.announce()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Second)
		require.NoError(t, n.m.Trigger(source.Event{Kind: source.KindReboot, Deadline: time.Now().Add(5 * time.Second)}))
		n.advance(13 * time.Second) // until 15 s

		require.Equal(t, []source.Kind{source.KindUnknown}, reported, "only the first shutdown is reported so far")
		require.Equal(t, source.KindReboot, n.lastReport().Kind)
	})
}

// A pod outlives two cancelled shutdowns, and a third one begins. Until the third one ends, LastReport returns the report of
// the second, which still has the pod.
func TestTheLastReportKeepsItsPods(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.run()
		for range 2 {
			n.announce()
			n.advance(time.Second)
			n.host.Cancel()
			n.advance(time.Minute)
		}
		second := n.lastReport()
		require.Equal(t, []string{"web"}, names(second))
		n.announce()
		require.Equal(t, second, n.lastReport())
	})
}
