package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Lifecycle counts what happens to the hooks and containers of pods. A nil
// *Lifecycle counts nothing; all methods may be called concurrently.
type Lifecycle struct {
	httpFallbacks  prometheus.Counter
	sleepsCutShort prometheus.Counter
}

// NewLifecycle makes the collectors of the lifecycle package and registers them
// with reg. A nil reg registers nothing, and the handle still counts. It is an
// error if reg already has one of the series, and then none is registered.
func NewLifecycle(reg prometheus.Registerer, opts Options) (*Lifecycle, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: opts.prefix(), Name: name, Help: help})
	}
	m := &Lifecycle{
		httpFallbacks: counter("lifecycle_handler_http_fallbacks_total",
			"The number of times lifecycle handlers successfully fell back to http from https."),
		sleepsCutShort: counter("sleep_action_terminated_early_total",
			"The number of times lifecycle sleep handler got terminated before it finishes"),
	}
	if err := register(reg, m.httpFallbacks, m.sleepsCutShort); err != nil {
		return nil, err
	}
	return m, nil
}

// HTTPFallback counts an HTTPS hook that succeeded over HTTP after the server
// had answered in plain HTTP (kubelet_lifecycle_handler_http_fallbacks_total).
func (m *Lifecycle) HTTPFallback() {
	if m != nil {
		m.httpFallbacks.Inc()
	}
}

// SleepTerminatedEarly counts a sleep hook that was cancelled before its time
// was over (kubelet_sleep_action_terminated_early_total). A sleep that ends
// because its container has exited is not counted here.
func (m *Lifecycle) SleepTerminatedEarly() {
	if m != nil {
		m.sleepsCutShort.Inc()
	}
}
