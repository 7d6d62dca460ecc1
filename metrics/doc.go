// Package metrics has the Prometheus collectors of kubegrace, in two handles:
// [Lifecycle] for the termination of pods and [Shutdown] for the shutdown of the node.
// Series that the kubelet also has keep its names, help texts and labels, so that
// dashboards and alerts made for a kubelet go on working.
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
// # The series
//
// All names begin with "kubelet_", or with the namespace of [Options].
// Durations are in seconds. README.md beside this file lists all series with their labels, and says
// which are the kubelet's own, or have their names from a Kubernetes enhancement proposal (KEP). The
// others are kubegrace's.
//
// Every label has few values: an unknown one is recorded as "other", or "Other" in
// [Shutdown].
//
// # Concurrency properties
//
// All methods may be called concurrently, and while a registry gathers. The counts of
// stop signals are replaced as a whole: no scrape sees a part of them. Handles start no
// goroutine. Two handles in two registries share nothing; two in one registry, with the
// same namespace, share all series.
//
// # Failure modes
//
// A series that the registerer has already, with the same name, labels and help text, is
// shared. Two managers in one registry, a manager that was made again, and an agent that
// runs within a kubelet therefore count in the same series. A gauge that both set shows
// the last value. If a name is registered with another description, the constructor
// returns an error that contains the name, and registers nothing; another namespace
// helps.
//
// The registry of Kubernetes (legacyregistry of k8s.io/component-base) panics when a
// kubelet registers a series that is there already. In the process of a kubelet, call
// these constructors after the kubelet's metrics.Register.
//
// With a nil registerer a handle counts, but nothing shows the series. A nil handle
// counts nothing, so that a caller without metrics needs no special case. The two times
// of a shutdown are 0 before the first one.
//
// # Testing
//
// Give each test its own registry (prometheus.NewPedanticRegistry checks more) and
// compare it with the package testutil of client_golang. The handles work in
// testing/synctest bubbles.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package metrics
