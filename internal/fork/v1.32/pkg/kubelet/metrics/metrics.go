// Package metrics stands in for the kubelet's package of this name. It declares those of the kubelet's metrics that
// kubegrace has under the same names: in a fork kubegrace counts in the kubelet's, and registers no second ones
// (../kubegrace/metrics.go).
package metrics

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	GracefulShutdownStartTime = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "kubelet", Name: "graceful_shutdown_start_time_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Last graceful shutdown start time since unix epoch in seconds",
	})
	GracefulShutdownEndTime = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "kubelet", Name: "graceful_shutdown_end_time_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Last graceful shutdown end time since unix epoch in seconds",
	})
	LifecycleHandlerHTTPFallbacks = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "kubelet", Name: "lifecycle_handler_http_fallbacks_total", StabilityLevel: metrics.ALPHA,
		Help: "The number of times lifecycle handlers successfully fell back to http from https.",
	})
	LifecycleHandlerSleepTerminated = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "kubelet", Name: "sleep_action_terminated_early_total", StabilityLevel: metrics.ALPHA,
		Help: "The number of times lifecycle sleep handler got terminated before it finishes",
	})
)

// Register registers the metrics. A second call panics. The kubelet calls it once, after it has created its managers.
func Register() {
	legacyregistry.MustRegister(GracefulShutdownStartTime, GracefulShutdownEndTime, LifecycleHandlerHTTPFallbacks, LifecycleHandlerSleepTerminated)
}
