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
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	kubeletmetrics "k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubegrace/kubegrace/metrics"
)

// LifecycleMetrics returns kubegrace's series of hooks and terminations in the registry of
// Kubernetes. Each call returns the same series. If they cannot be registered, it is logged, and
// the result is nil, which counts nothing.
func LifecycleMetrics(logger klog.Logger) *metrics.Lifecycle {
	series, err := metrics.NewLifecycle(newRegisterer(), metrics.Options{})
	if err != nil {
		logger.Error(err, "Hooks and terminations are not counted")
	}
	return series
}

// ShutdownMetrics is LifecycleMetrics for the series of node shutdowns.
func ShutdownMetrics(logger klog.Logger) *metrics.Shutdown {
	series, err := metrics.NewShutdown(newRegisterer(), metrics.Options{})
	if err != nil {
		logger.Error(err, "Node shutdowns are not counted")
	}
	return series
}

// kubeletSeries is a series that the kubelet declares itself.
type kubeletSeries interface {
	prometheus.Collector
	FQName() string
}

// registerer is the registry of Kubernetes, but for the four series that the kubelet declares
// itself. Those it gives as they are and leaves their registration to the kubelet, whose
// metrics.Register comes later than the constructors here, and panics if a name is taken.
type registerer struct {
	prometheus.Registerer
	kubelets []kubeletSeries
}

func newRegisterer() registerer {
	return registerer{legacyregistry.Registerer(), []kubeletSeries{
		kubeletmetrics.GracefulShutdownStartTime, kubeletmetrics.GracefulShutdownEndTime,
		kubeletmetrics.LifecycleHandlerHTTPFallbacks, kubeletmetrics.LifecycleHandlerSleepTerminated,
	}}
}

// Register registers a collector unless the kubelet declares a series of its name.
func (r registerer) Register(c prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 1) // each collector of kubegrace has one
	c.Describe(descriptions)
	description := (<-descriptions).String()
	for _, series := range r.kubelets {
		if strings.Contains(description, "fqName: "+strconv.Quote(series.FQName())+",") {
			return prometheus.AlreadyRegisteredError{ExistingCollector: series, NewCollector: c}
		}
	}
	return r.Registerer.Register(c)
}
