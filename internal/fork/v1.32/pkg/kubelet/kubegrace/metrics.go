/*
Copyright The kubegrace Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package kubegrace

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	kubeletmetrics "k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubegrace/kubegrace/metrics"
)

// series are kubegrace's series that the kubelet lacks. They are declared here so that the tools for metrics stability
// find them and --disabled-metrics applies to them.
var series = []interface {
	basemetrics.Registerable
	IsHidden() bool
}{ //nolint:gochecknoglobals // as in k8s.io/kubernetes/pkg/kubelet/metrics
	basemetrics.NewHistogramVec(&basemetrics.HistogramOpts{
		Subsystem: "kubelet", Name: "prestop_hook_duration_seconds", StabilityLevel: basemetrics.ALPHA,
		Help:    "Duration of preStop hooks in seconds, by handler and outcome.",
		Buckets: []float64{0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
	}, []string{"handler", "outcome"}),
	basemetrics.NewHistogramVec(&basemetrics.HistogramOpts{
		Subsystem: "kubelet", Name: "pod_termination_duration_seconds", StabilityLevel: basemetrics.ALPHA,
		Help:    "Duration of pod terminations in seconds, by the outcome of the pod's worst container.",
		Buckets: []float64{0.1, 0.5, 1, 2, 5, 10, 20, 30, 33, 60, 63, 120, 300, 600, 1800, 3600},
	}, []string{"outcome"}),
	basemetrics.NewCounter(&basemetrics.CounterOpts{
		Subsystem: "kubelet", Name: "prestop_hooks_abandoned_total", StabilityLevel: basemetrics.ALPHA,
		Help: "PreStop hooks that did not return when their context was cancelled.",
	}),
	basemetrics.NewCounter(&basemetrics.CounterOpts{
		Subsystem: "kubelet", Name: "containers_killed_after_grace_total", StabilityLevel: basemetrics.ALPHA,
		Help: "Containers that were killed because their grace period had ended.",
	}),
	basemetrics.NewCounter(&basemetrics.CounterOpts{
		Subsystem: "kubelet", Name: "pod_termination_grace_period_exceeded_total", StabilityLevel: basemetrics.ALPHA,
		Help: "Pods with a container that was killed because the termination grace period had ended.",
	}),
	basemetrics.NewGauge(&basemetrics.GaugeOpts{
		Subsystem: "kubelet", Name: "graceful_shutdown_inhibitor_held", StabilityLevel: basemetrics.ALPHA,
		Help: "Whether the inhibitor lock is held (1) or not (0)",
	}),
	basemetrics.NewGaugeVec(&basemetrics.GaugeOpts{
		Subsystem: "kubelet", Name: "graceful_shutdown_delay_seconds", StabilityLevel: basemetrics.ALPHA,
		Help: "Delay of the host's shutdown in seconds, as requested and as granted",
	}, []string{"kind"}),
	basemetrics.NewHistogram(&basemetrics.HistogramOpts{
		Subsystem: "kubelet", Name: "graceful_shutdown_bucket_duration_seconds", StabilityLevel: basemetrics.ALPHA,
		Help:    "Duration of the buckets of graceful shutdowns in seconds, without empty buckets",
		Buckets: []float64{.1, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600},
	}),
	basemetrics.NewCounterVec(&basemetrics.CounterOpts{
		Subsystem: "kubelet", Name: "graceful_shutdown_pods_total", StabilityLevel: basemetrics.ALPHA,
		Help: "Pods killed by graceful shutdowns, by outcome",
	}, []string{"outcome"}),
	basemetrics.NewCounter(&basemetrics.CounterOpts{
		Subsystem: "kubelet", Name: "graceful_shutdown_pods_refused_total", StabilityLevel: basemetrics.ALPHA,
		Help: "Pods that were not admitted because the node was shutting down",
	}),
}

// LifecycleMetrics returns the metrics of hooks and terminations. Those of all calls count in the same series. If a series
// cannot be registered, it logs this and returns nil; a nil *metrics.Lifecycle counts nothing.
func LifecycleMetrics(logger klog.Logger) *metrics.Lifecycle {
	counters, err := metrics.NewLifecycle(declaredSeries{}, metrics.Options{})
	if err != nil {
		logger.Error(err, "Hooks and terminations are not counted")
	}
	return counters
}

// ShutdownMetrics returns the metrics of node shutdowns. Those of all calls count in the same series. If a series cannot be
// registered, it logs this and returns nil; a nil *metrics.Shutdown counts nothing.
func ShutdownMetrics(logger klog.Logger) *metrics.Shutdown {
	counters, err := metrics.NewShutdown(declaredSeries{}, metrics.Options{})
	if err != nil {
		logger.Error(err, "Node shutdowns are not counted")
	}
	return counters
}

// declaredSeries registers series in the registry of Kubernetes as they are declared here or by the kubelet. Other series are
// not registered: they count what a kubelet does not do.
type declaredSeries struct{ prometheus.Registerer }

// Register makes package metrics count in a series of this package, or of the kubelet, instead of in c: it returns the
// series with c's name as the ExistingCollector of an AlreadyRegisteredError. It registers only the series of this package.
// The kubelet's are registered later, by metrics.Register, which panics if a name is taken.
func (declaredSeries) Register(c prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 1) // each collector of kubegrace has one
	c.Describe(descriptions)
	description := (<-descriptions).String()
	matches := func(s basemetrics.Registerable) bool {
		return strings.Contains(description, "fqName: "+strconv.Quote(s.FQName())+",")
	}
	kubelets := []basemetrics.Registerable{
		kubeletmetrics.GracefulShutdownStartTime, kubeletmetrics.GracefulShutdownEndTime,
		kubeletmetrics.LifecycleHandlerHTTPFallbacks, kubeletmetrics.LifecycleHandlerSleepTerminated,
	}
	if i := slices.IndexFunc(kubelets, matches); i >= 0 {
		return prometheus.AlreadyRegisteredError{ExistingCollector: kubelets[i], NewCollector: c}
	}
	for _, s := range series {
		if !matches(s) {
			continue
		}
		var already prometheus.AlreadyRegisteredError // in an earlier call
		if err := legacyregistry.Register(s); err != nil && !errors.As(err, &already) {
			return err
		}
		if s.IsHidden() { // disabled: c counts, but is not exposed
			return nil
		}
		return prometheus.AlreadyRegisteredError{ExistingCollector: counting(s), NewCollector: c}
	}
	return nil
}

// counting returns the Prometheus collector behind a registered series, in which package metrics can count.
func counting(s prometheus.Collector) prometheus.Collector {
	switch s := s.(type) {
	case *basemetrics.CounterVec:
		return s.CounterVec
	case *basemetrics.GaugeVec:
		return s.GaugeVec
	case *basemetrics.HistogramVec:
		return s.HistogramVec
	case *basemetrics.Histogram:
		return s.ObserverMetric.(prometheus.Collector) //nolint:forcetypeassert // it is a prometheus.Histogram
	default:
		return s
	}
}
