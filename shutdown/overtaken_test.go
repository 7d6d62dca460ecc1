//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// tally has the metrics of a node and the reports that OnReport got.
type tally struct {
	registry *prometheus.Registry
	reports  chan shutdown.Report
}

// countReports sets Options.Metrics and Options.OnReport of a node.
func countReports(t *testing.T, n *node) *tally {
	t.Helper()
	told := &tally{registry: prometheus.NewRegistry(), reports: make(chan shutdown.Report, 9)}
	shown, err := metrics.NewShutdown(told.registry, metrics.Options{})
	require.NoError(t, err)
	n.opts.Metrics = shown
	n.opts.OnReport = func(_ context.Context, r shutdown.Report) { told.reports <- r }
	return told
}

// podsCounted returns the number of pods in the metrics.
func (c *tally) podsCounted(t *testing.T) (n float64) {
	t.Helper()
	for _, of := range metricByLabel(t, c.registry, "kubelet_graceful_shutdown_pods_total") {
		n += of
	}
	return n
}

// names returns the pods of a report in its order.
func names(r shutdown.Report) (all []string) {
	for _, pod := range r.Pods {
		all = append(all, pod.Name)
	}
	return all
}

// After a notice has killed a pod, the host announces the same shutdown with less time. There is one report
// for both drains, which begins with the notice, one start time, and one count per pod.
func TestOneReportForANoticeAndAnEarlierDeadlineOfTheHost(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		told := countReports(t, n)
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: time.Hour}, "etcd": {Takes: time.Second}}
		n.runOnBoot(one)
		began := time.Now()
		require.NoError(t, n.m.Trigger(source.Event{Origin: "cloud", Kind: source.KindHalt, Deadline: began.Add(time.Minute)}))
		n.advance(10 * time.Second)
		require.Zero(t, n.killedAfter("web", began))
		n.host.Announce(source.Event{Origin: "logind", Kind: source.KindPoweroff, Deadline: began.Add(28 * time.Second)})
		n.advance(time.Minute)

		require.Len(t, n.killer.Kills(), 2, "web is not killed again, its remaining time is enough")
		require.Equal(t, 20*time.Second, n.killedAfter("etcd", began), "after the 20 s that web was given at first")
		require.Equal(t, 21*time.Second, n.releasedAfter(began), "etcd takes 1 s")
		require.Len(t, told.reports, 1)
		report := <-told.reports
		require.Equal(t, n.lastReport(), report)
		require.Equal(t, []string{"web", "etcd"}, names(report))
		require.Equal(t, "logind", report.Origin)
		require.Equal(t, source.KindPoweroff, report.Kind)
		require.True(t, report.Started.Equal(began))
		require.True(t, report.Pods[0].Started.Equal(began))
		require.Equal(t, "GraceExceeded", report.Pods[0].Outcome)
		require.Equal(t, 2.0, told.podsCounted(t))
		require.Equal(t, float64(began.Unix()), metricValue(t, told.registry, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Len(t, n.events.all(), 1, "detected once")
		stored, found, err := shutdown.StoredReport(n.opts.StateDir)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, []string{"web", "etcd"}, names(stored))
	})
}

// Trigger announces a shutdown without a deadline, and the host's own event follows up to 3 s later. A critical pod
// takes 25 s to end. It gets them, although its bucket has 10 s, because the host grants more and no other pod runs.
func TestALaterEventDoesNotShortenTimeThatTheHostGrants(t *testing.T) {
	for _, gap := range []time.Duration{0, 750 * time.Millisecond, 3 * time.Second} {
		for _, limit := range []time.Duration{28 * time.Second, 30 * time.Second, time.Minute} {
			for _, steps := range []bool{false, true} {
				limit := limit
				inBubble(t, list(shutdowntest.Pod("etcd", topPriority, 30)), func(t *testing.T, n *node) {
					n.killer.Default = shutdowntest.Behaviour{Takes: 25 * time.Second}
					if steps { // the final status has a second after the pods' time
						n.opts.Reporter, limit = &shutdowntest.Reporter{}, limit+time.Second
					}
					n.run()
					began := time.Now()
					require.NoError(t, n.m.Trigger(source.Event{Origin: "UPS"}))
					n.advance(gap)
					n.host.Announce(source.Event{Deadline: time.Now().Add(limit)})
					n.advance(2 * time.Minute)
					for _, kill := range n.killer.Kills() {
						until := kill.Started.Add(time.Duration(*kill.Request.GracePeriodSeconds) * time.Second)
						require.GreaterOrEqual(t, until.Sub(began), 25*time.Second, "%v, then %v, steps %v", gap, limit, steps)
					}
					require.Equal(t, 25*time.Second, n.lastReport().Pods[0].Ended.Sub(began), "%v, then %v, steps %v", gap, limit, steps)
					require.Equal(t, 25*time.Second, n.releasedAfter(began), "%v, then %v, steps %v", gap, limit, steps)
				})
			}
		}
	}
}
