// Package metrics has the Prometheus collectors of kubegrace: a handle for the
// termination of pods and one for the shutdown of the node. The kubelet's own series
// keep their names, help texts and labels, so that dashboards and alerts made for a
// kubelet go on working; what the kubelet does not have is a series of its own.
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
//			log.Fatal(err) // reg has another series of such a name
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
// All have the prefix [DefaultNamespace], or that of [Options]. Durations are in
// seconds. Of the kubelet, or of a Kubernetes enhancement proposal (KEP):
//
//   - lifecycle_handler_http_fallbacks_total: HTTPS hooks that succeeded over HTTP.
//   - sleep_action_terminated_early_total: sleep hooks that were cut (KEP-3960).
//   - pod_termination_grace_period_exceeded_total, pod_stop_signals_count (KEP-4960).
//   - graceful_shutdown_start_time_seconds, graceful_shutdown_end_time_seconds
//     (KEP-2712): the last shutdown of the node, since the epoch.
//
// Of kubegrace, in [Lifecycle]:
//
//   - prestop_hook_duration_seconds, by handler and outcome.
//   - prestop_hooks_abandoned_total: hooks that ignored their cancellation.
//   - sleep_action_ended_by_container_exit_total: sleeps that no one was left for.
//   - containers_killed_after_grace_total.
//   - pod_termination_duration_seconds, by outcome.
//
// and in [Shutdown] those with the prefix graceful_shutdown: the inhibitor, the
// delay that was asked for and granted, buckets, and pods killed and refused.
//
// Every label has few values. In [Lifecycle] that is enforced: a value that is not
// known is recorded as "other".
//
// # Concurrency properties
//
// All methods may be called by any number of goroutines at once, and while a
// registry gathers. A set of stop signals is replaced as a whole: no scrape sees half
// of it. Handles start no goroutine and have no state outside of their collectors;
// two handles in two registries share nothing, two in one registry share everything.
//
// # Failure modes
//
// A series that the registerer has already, with the same name, labels and help text, is
// shared: two managers in one registry, one that was made anew, and an agent that runs
// within a kubelet count in the same series, the kubelet's own included. What both set
// shows the last of them. A name that is taken by something else is an error of the
// constructor, which says which; nothing is registered then, and another namespace helps.
//
// The registry of Kubernetes (legacyregistry of k8s.io/component-base) panics when a
// kubelet registers a series that is there already, so in one process with a kubelet these
// constructors come after its metrics.Register, or the series are taken out of that.
//
// A nil registerer is none: the handle counts, and nobody sees it. A nil handle counts
// nothing, so that no caller has to ask whether metrics are wanted. The two times of a
// shutdown are 0 until there was one.
//
// # Testing
//
// Give each test a registry of its own (prometheus.NewPedanticRegistry checks more)
// and compare with the package testutil of client_golang. The handles work in
// testing/synctest bubbles.
package metrics
