package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// otherLabel stands for every label value that a handle does not know, so that
// no caller can make the number of series grow without bound.
const otherLabel = "other"

// Lifecycle counts what happens to the hooks and containers of pods. A nil
// *Lifecycle counts nothing; all methods may be called concurrently.
type Lifecycle struct {
	httpFallbacks     counter
	sleepsCutShort    counter
	sleepsEndedByExit counter
	hooksAbandoned    counter
	killedAfterGrace  counter
	podGraceExceeded  counter
	hooks             *prometheus.HistogramVec
	terminations      *prometheus.HistogramVec
	stopSignals       *stopSignals
}

// NewLifecycle makes the collectors of the lifecycle package and registers them
// with reg. A nil reg registers nothing, and the handle still counts. A series that
// reg has already with the same description is shared. It is an error if reg has one of
// that name with another description, and then none is registered.
func NewLifecycle(reg prometheus.Registerer, opts Options) (*Lifecycle, error) {
	r := &registration{reg: reg}
	namespace := opts.prefix()
	count := func(name, help string) counter {
		return share[counter](r, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))
	}
	m := &Lifecycle{
		// These two are the kubelet's.
		httpFallbacks: count("lifecycle_handler_http_fallbacks_total",
			alpha+"The number of times lifecycle handlers successfully fell back to http from https."),
		sleepsCutShort: count("sleep_action_terminated_early_total",
			alpha+"The number of times lifecycle sleep handler got terminated before it finishes"),
		sleepsEndedByExit: count("sleep_action_ended_by_container_exit_total",
			"Sleep hooks that ended because their container had exited."),
		hooksAbandoned: count("prestop_hooks_abandoned_total",
			"PreStop hooks that went on after they were cancelled and were not waited for."),
		killedAfterGrace: count("containers_killed_after_grace_total",
			"Containers that used up their grace period and were killed."),
		// This one and that of the stop signals have the names of KEP-4960.
		podGraceExceeded: count("pod_termination_grace_period_exceeded_total",
			"Pods of which a container had to be killed because the termination grace period was over."),
		hooks:        share[*prometheus.HistogramVec](r, newHookDurations(namespace)),
		terminations: share[*prometheus.HistogramVec](r, newTerminationDurations(namespace)),
		stopSignals:  share[*stopSignals](r, newStopSignals(namespace)),
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// newHookDurations covers hooks from a local exec of some milliseconds to
// drains of an hour.
func newHookDurations(namespace string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace,
		Name:      "prestop_hook_duration_seconds",
		Help:      "Duration of preStop hooks in seconds, by handler and outcome.",
		Buckets:   []float64{0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
	}, []string{"handler", "outcome"})
}

// newTerminationDurations has its bounds just past the usual grace periods, so
// that a pod which used all of its 30 s and the floor of 2 s is told from one
// that ended in time.
func newTerminationDurations(namespace string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace,
		Name:      "pod_termination_duration_seconds",
		Help:      "Duration of pod terminations in seconds, by the outcome of the pod's worst container.",
		Buckets:   []float64{0.1, 0.5, 1, 2, 5, 10, 20, 30, 33, 60, 63, 120, 300, 600, 1800, 3600},
	}, []string{"outcome"})
}

// HTTPFallback counts an HTTPS hook that succeeded over HTTP after the server
// had answered in plain HTTP (kubelet_lifecycle_handler_http_fallbacks_total).
func (m *Lifecycle) HTTPFallback() {
	if m != nil {
		m.httpFallbacks.Add(1)
	}
}

// SleepTerminatedEarly counts a sleep hook that was cancelled before its time
// was over (kubelet_sleep_action_terminated_early_total). A sleep that ends
// because its container has exited is not counted here, but by
// [Lifecycle.SleepEndedByExit].
func (m *Lifecycle) SleepTerminatedEarly() {
	if m != nil {
		m.sleepsCutShort.Add(1)
	}
}

// SleepEndedByExit counts a sleep hook that ended, without a failure, because
// its container had exited (kubelet_sleep_action_ended_by_container_exit_total).
// The kubelet sleeps on (k/k#134338), so the series is ours.
func (m *Lifecycle) SleepEndedByExit() {
	if m != nil {
		m.sleepsEndedByExit.Add(1)
	}
}

// HookEnded records how long a preStop hook ran, to its end or to where it was
// cut (kubelet_prestop_hook_duration_seconds). The handler is exec, httpGet or
// sleep and the outcome Completed, Failed, Cut or Abandoned; any other is
// recorded as "other". A hook that was skipped has no duration and is not to be
// recorded; a negative duration counts as 0.
//
// One that was Abandoned, because it did not end when it was cancelled, is counted as
// well (kubelet_prestop_hooks_abandoned_total): its goroutine is left behind until it
// returns by itself, so a rising count is a leak in a hook's runner.
func (m *Lifecycle) HookEnded(handler, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	handler = known(handler, "exec", "httpGet", "sleep")
	outcome = known(outcome, "Completed", "Failed", "Cut", "Abandoned")
	m.hooks.WithLabelValues(handler, outcome).Observe(max(took, 0).Seconds())
	if outcome == "Abandoned" {
		m.hooksAbandoned.Add(1)
	}
}

// PodTerminated records how long a pod's termination took
// (kubelet_pod_termination_duration_seconds). The outcome is that of its worst
// container: Graceful, NotFound, GraceExceeded, Forced, RuntimeStuck or
// LeftRunning; any other is recorded as "other". A negative duration counts as 0.
func (m *Lifecycle) PodTerminated(outcome string, took time.Duration) {
	if m == nil {
		return
	}
	outcome = known(outcome, "Graceful", "NotFound", "GraceExceeded", "Forced", "RuntimeStuck", "LeftRunning")
	m.terminations.WithLabelValues(outcome).Observe(max(took, 0).Seconds())
}

// ContainerKilledAfterGrace counts a container that used up its grace period
// and was killed (kubelet_containers_killed_after_grace_total).
func (m *Lifecycle) ContainerKilledAfterGrace() {
	if m != nil {
		m.killedAfterGrace.Add(1)
	}
}

// PodGraceExceeded counts, once a pod, a termination in which a container had to
// be killed because the grace period was over
// (kubelet_pod_termination_grace_period_exceeded_total, KEP-4960).
func (m *Lifecycle) PodGraceExceeded() {
	if m != nil {
		m.podGraceExceeded.Add(1)
	}
}

// StopSignals shows how many containers are stopped with which signal
// (kubelet_pod_stop_signals_count, KEP-4960): counts replaces all that was shown
// before, and a nil map clears it. The map is copied. Names that are none of the
// signals of the Kubernetes API, the empty one included, are shown as "other".
func (m *Lifecycle) StopSignals(counts map[string]int) {
	if m != nil {
		m.stopSignals.set(counts)
	}
}

// known is value if it is one of values, else [otherLabel].
func known(value string, values ...string) string {
	if slices.Contains(values, value) {
		return value
	}
	return otherLabel
}
