//go:build go1.25

package metrics_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/metrics"
)

// newLifecycle returns a new handle, and the registry in which it has registered its metrics.
func newLifecycle(t *testing.T) (*metrics.Lifecycle, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.NewLifecycle(reg, metrics.Options{})
	require.NoError(t, err)
	return m, reg
}

// callEachMethod calls each method once, so that each series has a value.
func callEachMethod(m *metrics.Lifecycle) {
	m.HTTPFallback()
	m.SleepTerminatedEarly()
	m.SleepEndedByExit()
	m.HookEnded("sleep", "Abandoned", 1500*time.Millisecond)
	m.PodTerminated("GraceExceeded", 32*time.Second)
	m.ContainerKilledAfterGrace()
	m.PodGraceExceeded()
	m.StopSignals(map[string]int{"SIGTERM": 3})
}

// counters are the counters and gauges after callEachMethod. The first two help texts are those in the kubelet's
// /metrics.
const counters = `
# HELP kubelet_lifecycle_handler_http_fallbacks_total [ALPHA] The number of times lifecycle handlers successfully fell back to http from https.
# TYPE kubelet_lifecycle_handler_http_fallbacks_total counter
kubelet_lifecycle_handler_http_fallbacks_total 1
# HELP kubelet_sleep_action_terminated_early_total [ALPHA] The number of times lifecycle sleep handler got terminated before it finishes
# TYPE kubelet_sleep_action_terminated_early_total counter
kubelet_sleep_action_terminated_early_total 1
# HELP kubelet_sleep_action_ended_by_container_exit_total Sleep hooks that ended because their container had exited.
# TYPE kubelet_sleep_action_ended_by_container_exit_total counter
kubelet_sleep_action_ended_by_container_exit_total 1
# HELP kubelet_prestop_hooks_abandoned_total PreStop hooks that did not return when their context was cancelled.
# TYPE kubelet_prestop_hooks_abandoned_total counter
kubelet_prestop_hooks_abandoned_total 1
# HELP kubelet_containers_killed_after_grace_total Containers that were killed because their grace period had ended.
# TYPE kubelet_containers_killed_after_grace_total counter
kubelet_containers_killed_after_grace_total 1
# HELP kubelet_pod_termination_grace_period_exceeded_total Pods with a container that was killed because the termination grace period had ended.
# TYPE kubelet_pod_termination_grace_period_exceeded_total counter
kubelet_pod_termination_grace_period_exceeded_total 1
# HELP kubelet_pod_stop_signals_count The number of containers by the signal they are stopped with.
# TYPE kubelet_pod_stop_signals_count gauge
kubelet_pod_stop_signals_count{signal="SIGTERM"} 3
`

// histograms are the histograms after callEachMethod: a termination of 32 s and a hook of 1.5 s.
const histograms = `
# HELP kubelet_pod_termination_duration_seconds Duration of pod terminations in seconds, by the outcome of the pod's worst container.
# TYPE kubelet_pod_termination_duration_seconds histogram
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="0.1"} 0
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="0.5"} 0
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="1"} 0
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="2"} 0
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="5"} 0
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="10"} 0
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="20"} 0
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="30"} 0
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="33"} 1
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="60"} 1
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="63"} 1
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="120"} 1
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="300"} 1
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="600"} 1
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="1800"} 1
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="3600"} 1
kubelet_pod_termination_duration_seconds_bucket{outcome="GraceExceeded",le="+Inf"} 1
kubelet_pod_termination_duration_seconds_sum{outcome="GraceExceeded"} 32
kubelet_pod_termination_duration_seconds_count{outcome="GraceExceeded"} 1
# HELP kubelet_prestop_hook_duration_seconds Duration of preStop hooks in seconds, by handler and outcome.
# TYPE kubelet_prestop_hook_duration_seconds histogram
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="0.01"} 0
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="0.1"} 0
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="0.5"} 0
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="1"} 0
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="2"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="5"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="10"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="20"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="30"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="60"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="120"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="300"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="600"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="1800"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="3600"} 1
kubelet_prestop_hook_duration_seconds_bucket{handler="sleep",outcome="Abandoned",le="+Inf"} 1
kubelet_prestop_hook_duration_seconds_sum{handler="sleep",outcome="Abandoned"} 1.5
kubelet_prestop_hook_duration_seconds_count{handler="sleep",outcome="Abandoned"} 1
`

// Each method is called once. The registry then has exactly the series that counters and histograms list. Prometheus'
// linter rejects one name only, which is from KEP-4960.
func TestLifecycleSeries(t *testing.T) {
	m, reg := newLifecycle(t)
	callEachMethod(m)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(counters+histograms)))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Len(t, problems, 1, "%v", problems)
	require.Equal(t, "kubelet_pod_stop_signals_count", problems[0].Metric)
}

// Two handles in one registry have different namespaces. The second handle has nine series of its own: seven counters and
// gauges, and two histograms.
func TestTwoNamespacesShareNoSeries(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	_, err := metrics.NewLifecycle(reg, metrics.Options{})
	require.NoError(t, err)
	agent, err := metrics.NewLifecycle(reg, metrics.Options{Namespace: "agent"})
	require.NoError(t, err)
	callEachMethod(agent)
	families, err := reg.Gather()
	require.NoError(t, err)
	ofAgent := 0
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "agent_") {
			ofAgent++
		}
	}
	require.Equal(t, 7+2, ofAgent)
}

// The methods are called with a thousand unknown label values. In each of the three metrics with labels these share one
// series, so that a caller cannot create any number of series.
func TestLifecycleLabelsAreBounded(t *testing.T) {
	m, reg := newLifecycle(t)
	for i := range 1000 {
		odd := fmt.Sprintf("odd-%d", i)
		m.HookEnded(odd, odd, time.Second)
		m.PodTerminated(odd, time.Second)
		m.StopSignals(map[string]int{odd: 1})
	}
	count, err := testutil.GatherAndCount(reg,
		"kubelet_prestop_hook_duration_seconds", "kubelet_pod_termination_duration_seconds", "kubelet_pod_stop_signals_count")
	require.NoError(t, err)
	require.Equal(t, 3, count)
}

// Each known handler and outcome is a label value of its own, and none counts as "other". So there is a series of hooks for each
// of 3 handlers and 4 outcomes, and one of pods for each of 6 outcomes.
func TestEachKnownLabelHasItsSeries(t *testing.T) {
	m, reg := newLifecycle(t)
	for _, handler := range []string{"exec", "httpGet", "sleep"} {
		for _, outcome := range []string{"Completed", "Failed", "Cut", "Abandoned"} {
			m.HookEnded(handler, outcome, time.Second)
		}
	}
	for _, outcome := range []string{"Graceful", "NotFound", "GraceExceeded", "Forced", "RuntimeStuck", "LeftRunning"} {
		m.PodTerminated(outcome, time.Second)
	}
	for name, want := range map[string]int{"kubelet_prestop_hook_duration_seconds": 3 * 4, "kubelet_pod_termination_duration_seconds": 6} {
		count, err := testutil.GatherAndCount(reg, name)
		require.NoError(t, err)
		require.Equal(t, want, count)
	}
}

// Durations are negative, as after the clock was set back. They count as 0, so that they do not lower the sum of a
// histogram.
func TestNegativeDurationsCountAsZero(t *testing.T) {
	m, reg := newLifecycle(t)
	m.HookEnded("exec", "Failed", -time.Hour)
	m.PodTerminated("Graceful", -time.Hour)
	families, err := reg.Gather()
	require.NoError(t, err)
	var sums []float64
	for _, family := range families {
		if histogram := family.GetMetric()[0].GetHistogram(); histogram != nil {
			sums = append(sums, histogram.GetSampleSum())
		}
	}
	require.Equal(t, []float64{0, 0}, sums, "of the histograms of hooks and of pods")
}

// requireStopSignals compares the gauge with the lines of /metrics.
func requireStopSignals(t *testing.T, reg prometheus.Gatherer, lines ...string) {
	t.Helper()
	want := ""
	if len(lines) > 0 {
		want = "# HELP kubelet_pod_stop_signals_count The number of containers by the signal they are stopped with.\n" +
			"# TYPE kubelet_pod_stop_signals_count gauge\n" + strings.Join(lines, "\n") + "\n"
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(want), "kubelet_pod_stop_signals_count"))
}

// Each call of StopSignals replaces all counts of the previous call. Names that are no signals of the API, here "" and "TERM",
// count together as "other".
func TestStopSignalsAreReplaced(t *testing.T) {
	m, reg := newLifecycle(t)
	requireStopSignals(t, reg) // no series

	counts := map[string]int{"SIGTERM": 2, "SIGUSR1": 1, "": 1, "TERM": 1}
	m.StopSignals(counts)
	counts["SIGTERM"] = 9 // has no effect: the handle has a copy
	requireStopSignals(t, reg,
		`kubelet_pod_stop_signals_count{signal="SIGTERM"} 2`,
		`kubelet_pod_stop_signals_count{signal="SIGUSR1"} 1`,
		`kubelet_pod_stop_signals_count{signal="other"} 2`)

	m.StopSignals(map[string]int{"SIGRTMIN+3": 1})
	requireStopSignals(t, reg, `kubelet_pod_stop_signals_count{signal="SIGRTMIN+3"} 1`)

	m.StopSignals(nil)
	requireStopSignals(t, reg) // no series
}

// The API has 34 named signals and 31 real-time signals. Each has a series of its own, and none counts as "other".
func TestEverySignalOfTheAPIIsKnown(t *testing.T) {
	counts := map[string]int{}
	for _, signal := range []v1.Signal{
		v1.SIGABRT, v1.SIGALRM, v1.SIGBUS, v1.SIGCHLD, v1.SIGCLD, v1.SIGCONT, v1.SIGFPE, v1.SIGHUP, v1.SIGILL,
		v1.SIGINT, v1.SIGIO, v1.SIGIOT, v1.SIGKILL, v1.SIGPIPE, v1.SIGPOLL, v1.SIGPROF, v1.SIGPWR, v1.SIGQUIT,
		v1.SIGSEGV, v1.SIGSTKFLT, v1.SIGSTOP, v1.SIGSYS, v1.SIGTERM, v1.SIGTRAP, v1.SIGTSTP, v1.SIGTTIN, v1.SIGTTOU,
		v1.SIGURG, v1.SIGUSR1, v1.SIGUSR2, v1.SIGVTALRM, v1.SIGWINCH, v1.SIGXCPU, v1.SIGXFSZ, v1.SIGRTMIN, v1.SIGRTMAX,
	} {
		counts[string(signal)] = 1
	}
	for i := 1; i <= 15; i++ {
		counts[fmt.Sprintf("SIGRTMIN+%d", i)] = 1
	}
	for i := 1; i <= 14; i++ {
		counts[fmt.Sprintf("SIGRTMAX-%d", i)] = 1
	}
	require.Len(t, counts, 65)
	m, reg := newLifecycle(t)
	m.StopSignals(counts)
	count, err := testutil.GatherAndCount(reg, "kubelet_pod_stop_signals_count")
	require.NoError(t, err)
	require.Equal(t, 65, count)
}

// Four writers call StopSignals concurrently, alternating between SIGTERM alone and SIGHUP with SIGINT. Each scrape
// sees the counts of one call: SIGTERM alone, or SIGHUP and SIGINT together.
func TestAScrapeSeesTheStopSignalsOfOneCall(t *testing.T) {
	m, reg := newLifecycle(t)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 200 {
				callEachMethod(m) // StopSignals with SIGTERM
				m.StopSignals(map[string]int{"SIGHUP": 1, "SIGINT": 1})
			}
		})
	}
	for range 200 {
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() != "kubelet_pod_stop_signals_count" {
				continue
			}
			var signals []string
			for _, series := range family.GetMetric() {
				signals = append(signals, series.GetLabel()[0].GetValue())
			}
			require.Contains(t, [][]string{{"SIGTERM"}, {"SIGHUP", "SIGINT"}}, signals)
		}
	}
	writers.Wait()
}
