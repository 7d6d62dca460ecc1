// Package metrics has kubegrace's Prometheus collectors: [Lifecycle] for the termination of pods and
// [Shutdown] for the shutdown of the node. Series that the kubelet also has keep its names, help texts and
// labels, so that a kubelet's dashboards and alerts keep working.
//
//	package main
//
//	import (
//		"log"
//		"net/http"
//
//		"github.com/prometheus/client_golang/prometheus"
//		"github.com/prometheus/client_golang/prometheus/promhttp"
//
//		"github.com/kubegrace/kubegrace/lifecycle"
//		"github.com/kubegrace/kubegrace/metrics"
//	)
//
//	func main() {
//		reg := prometheus.NewRegistry()
//		pods, err := metrics.NewLifecycle(reg, metrics.Options{})
//		if err != nil {
//			log.Fatal(err) // reg has a different series of the same name
//		}
//		node, err := metrics.NewShutdown(reg, metrics.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//
//		hooks := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Metrics: pods})
//		_ = hooks // goes into lifecycle.TerminatorOptions, with the same handle
//		_ = node  // goes into shutdown.Options
//
//		http.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
//		log.Fatal(http.ListenAndServe("127.0.0.1:9100", nil))
//	}
//
// # Series
//
// All names begin with "kubelet_", or with the namespace of [Options]. Durations are in seconds. The README
// beside this file lists all series with their labels. An unknown label value is recorded as "other",
// so the number of series is bounded.
//
// # Sharing a registry
//
// If the registerer already has a series with the same name, labels and help text, it is shared. Two
// managers, a recreated manager, and an agent inside a kubelet therefore count in the same series. A gauge
// shows the last value that was set.
//
// Kubernetes' own registry (legacyregistry of k8s.io/component-base) panics when a kubelet registers a
// series that already exists. In a kubelet's process, call these constructors after the kubelet's
// metrics.Register.
//
// # Failures
//
//	what fails                          what happens                         what to do
//	a name is registered with another   the constructor returns an error     choose another
//	  description                         and registers nothing                Options.Namespace
//	Options.Namespace is no metric      the same                             choose another
//	  name
//	the registerer is nil               the handle counts, but is not        pass a registerer
//	                                      exposed
//	the handle is nil                   it counts nothing                    nothing
//
// # Concurrency
//
// All methods may be called concurrently. No goroutine is started.
//
// # Testing
//
// Give each test its own registry (prometheus.NewPedanticRegistry checks more), and compare it with
// client_golang's package testutil.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package metrics
