package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// otherLabel replaces every label value that [Lifecycle] does not know, so that no
// caller can make the number of series grow without bound.
const otherLabel = "other"

// Lifecycle counts what happens to hooks and containers when pods terminate. Make one
// with [NewLifecycle]. A nil or zero one counts nothing; all methods may be called
// concurrently.
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

// isMade reports whether NewLifecycle has made the handle. The zero one counts nothing either.
func (m *Lifecycle) isMade() bool { return m != nil && m.hooks != nil }

// NewLifecycle makes the collectors of package lifecycle and registers them with reg. A
// nil reg registers nothing; the handle counts all the same. A series that reg has
// already, with the same description, is shared. If reg has a series of that name with
// another description, the result is an error, and nothing is registered.
func NewLifecycle(reg prometheus.Registerer, opts Options) (*Lifecycle, error) {
	r := newRegistration(reg)
	namespace := opts.namespace()
	newCounter := func(name, help string) counter {
		return registerOrFind[counter](r, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))
	}
	m := &Lifecycle{
		// The kubelet has these two.
		httpFallbacks: newCounter("lifecycle_handler_http_fallbacks_total",
			alpha+"The number of times lifecycle handlers successfully fell back to http from https."),
		sleepsCutShort: newCounter("sleep_action_terminated_early_total",
			alpha+"The number of times lifecycle sleep handler got terminated before it finishes"),
		sleepsEndedByExit: newCounter("sleep_action_ended_by_container_exit_total",
			"Sleep hooks that ended because their container had exited."),
		hooksAbandoned: newCounter("prestop_hooks_abandoned_total",
			"PreStop hooks that went on after they were cancelled and were not waited for."),
		killedAfterGrace: newCounter("containers_killed_after_grace_total",
			"Containers that used up their grace period and were killed."),
		// KEP-4960 has the names of this series and of that of the stop signals.
		podGraceExceeded: newCounter("pod_termination_grace_period_exceeded_total",
			"Pods of which a container had to be killed because the termination grace period was over."),
		hooks:        registerOrFind[*prometheus.HistogramVec](r, newHookDurations(namespace)),
		terminations: registerOrFind[*prometheus.HistogramVec](r, newTerminationDurations(namespace)),
		stopSignals:  registerOrFind[*stopSignals](r, newStopSignals(namespace)),
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// newHookDurations makes the histogram of preStop hooks. Its bounds reach from an exec
// of some milliseconds to a sleep of an hour.
func newHookDurations(namespace string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace,
		Name:      "prestop_hook_duration_seconds",
		Help:      "Duration of preStop hooks in seconds, by handler and outcome.",
		Buckets:   []float64{0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
	}, []string{"handler", "outcome"})
}

// newTerminationDurations makes the histogram of pod terminations. It has bounds just
// above the usual grace periods, which separate a pod that used up its 30 s, and the 2 s
// that a container's stop has at least, from one that took longer.
func newTerminationDurations(namespace string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace,
		Name:      "pod_termination_duration_seconds",
		Help:      "Duration of pod terminations in seconds, by the outcome of the pod's worst container.",
		Buckets:   []float64{0.1, 0.5, 1, 2, 5, 10, 20, 30, 33, 60, 63, 120, 300, 600, 1800, 3600},
	}, []string{"outcome"})
}

// HTTPFallback counts an HTTPS hook whose server answered in plain HTTP, and that then
// succeeded over HTTP (kubelet_lifecycle_handler_http_fallbacks_total).
func (m *Lifecycle) HTTPFallback() {
	if m.isMade() {
		m.httpFallbacks.Add(1)
	}
}

// SleepTerminatedEarly counts a sleep hook that was cancelled before its time was over
// (kubelet_sleep_action_terminated_early_total). [Lifecycle.SleepEndedByExit] counts
// those that ended because their container exited.
func (m *Lifecycle) SleepTerminatedEarly() {
	if m.isMade() {
		m.sleepsCutShort.Add(1)
	}
}

// SleepEndedByExit counts a sleep hook that ended, without a failure, because its
// container exited (kubelet_sleep_action_ended_by_container_exit_total). The kubelet has
// no such series, because it sleeps on (k/k#134338).
func (m *Lifecycle) SleepEndedByExit() {
	if m.isMade() {
		m.sleepsEndedByExit.Add(1)
	}
}

// HookEnded records how long a preStop hook ran, until it returned or was cancelled
// (kubelet_prestop_hook_duration_seconds). The handler is exec, httpGet or sleep, and
// the outcome Completed, Failed, Cut or Abandoned; any other value is recorded as
// "other". Do not call it for a hook that was skipped. A negative duration counts as 0.
//
// A hook that is Abandoned, because it did not return when it was cancelled, is also
// counted in kubelet_prestop_hooks_abandoned_total. Its goroutine runs until the hook
// returns, so a count that rises means that a hook runner leaks goroutines.
func (m *Lifecycle) HookEnded(handler, outcome string, took time.Duration) {
	if !m.isMade() {
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
	if !m.isMade() {
		return
	}
	outcome = known(outcome, "Graceful", "NotFound", "GraceExceeded", "Forced", "RuntimeStuck", "LeftRunning")
	m.terminations.WithLabelValues(outcome).Observe(max(took, 0).Seconds())
}

// ContainerKilledAfterGrace counts a container that used up its grace period
// and was killed (kubelet_containers_killed_after_grace_total).
func (m *Lifecycle) ContainerKilledAfterGrace() {
	if m.isMade() {
		m.killedAfterGrace.Add(1)
	}
}

// PodGraceExceeded counts a pod of which at least one container was killed because the
// grace period was over (kubelet_pod_termination_grace_period_exceeded_total, KEP-4960).
// Call it once for a pod.
func (m *Lifecycle) PodGraceExceeded() {
	if m.isMade() {
		m.podGraceExceeded.Add(1)
	}
}

// StopSignals sets how many containers are stopped with which signal
// (kubelet_pod_stop_signals_count, KEP-4960). The counts replace all earlier ones; a nil
// map clears them. The map is copied. A name that is no signal of the Kubernetes API,
// such as "", is shown as "other".
func (m *Lifecycle) StopSignals(counts map[string]int) {
	if m.isMade() {
		m.stopSignals.set(counts)
	}
}

// known returns value if it is one of values, else [otherLabel].
func known(value string, values ...string) string {
	if slices.Contains(values, value) {
		return value
	}
	return otherLabel
}
