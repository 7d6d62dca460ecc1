package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// otherLabel replaces every label value that [Lifecycle] or [Shutdown] does not know, so that the number
// of series is bounded.
const otherLabel = "other"

// Lifecycle counts the hooks and containers of terminating pods. Create one with
// [NewLifecycle]. A nil or zero Lifecycle counts nothing. All methods may be called
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

// isMade reports whether NewLifecycle has created the handle. If not, all methods do nothing.
func (m *Lifecycle) isMade() bool { return m != nil && m.hooks != nil }

// NewLifecycle creates the collectors of package lifecycle and registers them with reg. With
// a nil reg they are not registered. A series that reg already has with the same description
// is shared. If reg has a series of the same name with another description, NewLifecycle
// returns an error and registers nothing.
func NewLifecycle(reg prometheus.Registerer, opts Options) (*Lifecycle, error) {
	r := newRegistration(reg, opts)
	namespace := opts.namespace()
	newCounter := func(name, help string) counter {
		return registerOrFind[counter](r, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))
	}
	m := &Lifecycle{
		// The kubelet has httpFallbacks and sleepsCutShort too, with these texts.
		httpFallbacks: newCounter("lifecycle_handler_http_fallbacks_total",
			alphaPrefix+"The number of times lifecycle handlers successfully fell back to http from https."),
		sleepsCutShort: newCounter("sleep_action_terminated_early_total",
			alphaPrefix+"The number of times lifecycle sleep handler got terminated before it finishes"),
		sleepsEndedByExit: newCounter("sleep_action_ended_by_container_exit_total",
			"Sleep hooks that ended because their container had exited."),
		hooksAbandoned: newCounter("prestop_hooks_abandoned_total",
			"PreStop hooks that did not return when their context was cancelled."),
		killedAfterGrace: newCounter("containers_killed_after_grace_total",
			"Containers that were killed because their grace period had ended."),
		// The names of podGraceExceeded and stopSignals are from KEP-4960.
		podGraceExceeded: newCounter("pod_termination_grace_period_exceeded_total",
			"Pods with a container that was killed because the termination grace period had ended."),
		hooks:        registerOrFind[*prometheus.HistogramVec](r, newHookDurations(namespace)),
		terminations: registerOrFind[*prometheus.HistogramVec](r, newTerminationDurations(namespace)),
		stopSignals:  registerOrFind[*stopSignals](r, newStopSignals(namespace)),
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// newHookDurations returns the histogram of preStop hooks, from an exec of a few
// milliseconds to a sleep of an hour.
func newHookDurations(namespace string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace,
		Name:      "prestop_hook_duration_seconds",
		Help:      "Duration of preStop hooks in seconds, by handler and outcome.",
		Buckets:   []float64{0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
	}, []string{"handler", "outcome"})
}

// newTerminationDurations returns the histogram of pod terminations. A pod that uses its whole
// grace period may take 2 s longer, the minimum for a stop. The usual grace periods are 30 s
// and 60 s: the bounds 33 and 63 separate pods that used all of it from pods that exceeded it.
func newTerminationDurations(namespace string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace,
		Name:      "pod_termination_duration_seconds",
		Help:      "Duration of pod terminations in seconds, by the outcome of the pod's worst container.",
		Buckets:   []float64{0.1, 0.5, 1, 2, 5, 10, 20, 30, 33, 60, 63, 120, 300, 600, 1800, 3600},
	}, []string{"outcome"})
}

// HTTPFallback counts an HTTPS hook that succeeded over HTTP, because its server does not
// use TLS (kubelet_lifecycle_handler_http_fallbacks_total).
func (m *Lifecycle) HTTPFallback() {
	if m.isMade() {
		m.httpFallbacks.Add(1)
	}
}

// SleepTerminatedEarly counts a sleep hook that was cancelled
// (kubelet_sleep_action_terminated_early_total).
func (m *Lifecycle) SleepTerminatedEarly() {
	if m.isMade() {
		m.sleepsCutShort.Add(1)
	}
}

// SleepEndedByExit counts a sleep hook that ended because its container exited
// (kubelet_sleep_action_ended_by_container_exit_total). The kubelet continues to sleep
// (k/k#134338).
func (m *Lifecycle) SleepEndedByExit() {
	if m.isMade() {
		m.sleepsEndedByExit.Add(1)
	}
}

// HookEnded records the duration of a preStop hook until it returned or was abandoned
// (kubelet_prestop_hook_duration_seconds). handler is exec, httpGet or sleep; outcome is
// Completed, Failed, Cut or Abandoned. Any other value is recorded as "other". A negative
// duration counts as 0. Do not call it for a skipped hook.
//
// An Abandoned hook did not return when it was cancelled. It is also counted in
// kubelet_prestop_hooks_abandoned_total: if this count rises, a hook runner may be leaking
// goroutines.
func (m *Lifecycle) HookEnded(handler, outcome string, took time.Duration) {
	if !m.isMade() {
		return
	}
	handler = knownOrOther(handler, "exec", "httpGet", "sleep")
	outcome = knownOrOther(outcome, "Completed", "Failed", "Cut", "Abandoned")
	m.hooks.WithLabelValues(handler, outcome).Observe(max(took, 0).Seconds())
	if outcome == "Abandoned" {
		m.hooksAbandoned.Add(1)
	}
}

// outcomes returns the outcomes of package lifecycle, which this package does not import.
func outcomes() []string {
	return []string{"Graceful", "NotFound", "GraceExceeded", "Forced", "RuntimeStuck", "LeftRunning"}
}

// PodTerminated records the duration of a pod's termination
// (kubelet_pod_termination_duration_seconds). outcome is that of the pod's worst container:
// Graceful, NotFound, GraceExceeded, Forced, RuntimeStuck or LeftRunning. Any other value is
// recorded as "other". A negative duration counts as 0.
func (m *Lifecycle) PodTerminated(outcome string, took time.Duration) {
	if !m.isMade() {
		return
	}
	outcome = knownOrOther(outcome, outcomes()...)
	m.terminations.WithLabelValues(outcome).Observe(max(took, 0).Seconds())
}

// ContainerKilledAfterGrace counts a container that was killed because its grace period had
// ended (kubelet_containers_killed_after_grace_total).
func (m *Lifecycle) ContainerKilledAfterGrace() {
	if m.isMade() {
		m.killedAfterGrace.Add(1)
	}
}

// PodGraceExceeded counts a pod with at least one container that was killed because its
// grace period had ended (kubelet_pod_termination_grace_period_exceeded_total, KEP-4960).
// Call it once per pod.
func (m *Lifecycle) PodGraceExceeded() {
	if m.isMade() {
		m.podGraceExceeded.Add(1)
	}
}

// StopSignals sets the number of containers for each stop signal
// (kubelet_pod_stop_signals_count, KEP-4960). The counts replace all earlier ones; a nil
// map clears them. The map is copied. A name that is not a v1.Signal is shown as "other".
func (m *Lifecycle) StopSignals(counts map[string]int) {
	if m.isMade() {
		m.stopSignals.set(counts)
	}
}

// knownOrOther returns value if it is one of the known ones. Any other value becomes [otherLabel], so that a
// caller cannot create series without bound.
func knownOrOther(value string, known ...string) string {
	if slices.Contains(known, value) {
		return value
	}
	return otherLabel
}
