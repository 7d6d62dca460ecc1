package kubegrace

import "k8s.io/component-base/metrics"

// disable does what the flag --disabled-metrics does.
func disable(name string) { metrics.SetDisabledMetrics([]string{name}) }
