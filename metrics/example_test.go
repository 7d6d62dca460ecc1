package metrics_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
)

// printSeries prints the lines of /metrics that begin with prefix.
func printSeries(reg prometheus.Gatherer, prefix string) {
	page := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for lines := bufio.NewScanner(page.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), prefix) {
			fmt.Println(lines.Text())
		}
	}
}

// An agent that terminates pods and drains its node uses both handles.
func Example() {
	reg := prometheus.NewRegistry()
	pods, err := metrics.NewLifecycle(reg, metrics.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	node, err := metrics.NewShutdown(reg, metrics.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	hooks := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Metrics: pods})
	_ = hooks // goes into lifecycle.TerminatorOptions, with the same handle
	_ = node  // goes into shutdown.Options

	pods.HTTPFallback() // as hooks does
	printSeries(reg, "kubelet_lifecycle")
	// Output:
	// kubelet_lifecycle_handler_http_fallbacks_total 1
}

// A hook sleeps for 5 s, and its pod is terminated after 8 s. Options.Namespace replaces the prefix kubelet.
func ExampleNewLifecycle() {
	reg := prometheus.NewRegistry()
	pods, err := metrics.NewLifecycle(reg, metrics.Options{Namespace: "agent"})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods.HookEnded("sleep", "Completed", 5*time.Second)
	pods.PodTerminated("Graceful", 8*time.Second)
	printSeries(reg, "agent_prestop_hook_duration_seconds_sum")
	printSeries(reg, "agent_pod_termination_duration_seconds_sum")
	// Output:
	// agent_prestop_hook_duration_seconds_sum{handler="sleep",outcome="Completed"} 5
	// agent_pod_termination_duration_seconds_sum{outcome="Graceful"} 8
}

// Each call replaces all counts. stopsignal.Count returns the map for the pods of a node.
func ExampleLifecycle_StopSignals() {
	reg := prometheus.NewRegistry()
	pods, err := metrics.NewLifecycle(reg, metrics.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods.StopSignals(map[string]int{"SIGTERM": 7, "SIGHUP": 1})
	pods.StopSignals(map[string]int{"SIGTERM": 6, "SIGQUIT": 2})
	printSeries(reg, "kubelet_pod_stop_signals_count")
	// Output:
	// kubelet_pod_stop_signals_count{signal="SIGQUIT"} 2
	// kubelet_pod_stop_signals_count{signal="SIGTERM"} 6
}

// The agent holds the inhibitor lock, kills one pod and refuses two new ones.
func ExampleNewShutdown() {
	reg := prometheus.NewRegistry()
	node, err := metrics.NewShutdown(reg, metrics.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	node.Inhibitor(true)
	node.Delay(45*time.Second, 30*time.Second) // the host grants less than requested
	node.PodKilled("Graceful")
	node.PodsRefused(2)
	printSeries(reg, "kubelet_graceful_shutdown_delay")
	printSeries(reg, "kubelet_graceful_shutdown_inhibitor")
	printSeries(reg, "kubelet_graceful_shutdown_pods")
	// Output:
	// kubelet_graceful_shutdown_delay_seconds{kind="granted"} 30
	// kubelet_graceful_shutdown_delay_seconds{kind="requested"} 45
	// kubelet_graceful_shutdown_inhibitor_held 1
	// kubelet_graceful_shutdown_pods_refused_total 2
	// kubelet_graceful_shutdown_pods_total{outcome="Graceful"} 1
}
