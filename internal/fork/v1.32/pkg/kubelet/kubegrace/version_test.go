package kubegrace

import "k8s.io/component-base/metrics"

// disableSeries does what the flag --disabled-metrics does.
func disableSeries(name string) { metrics.SetDisabledMetric(name) }
