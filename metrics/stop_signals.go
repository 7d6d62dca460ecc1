package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// stopSignals is a collector with one gauge for each stop signal. A call of set replaces all
// counts at once, so that a scrape never sees some counts of one call and some of the next.
type stopSignals struct {
	desc   *prometheus.Desc
	counts atomic.Pointer[map[string]int]
}

// newStopSignals returns a collector that shows nothing until set is called.
func newStopSignals(namespace string) *stopSignals {
	return &stopSignals{desc: prometheus.NewDesc(
		prometheus.BuildFQName(namespace, "", "pod_stop_signals_count"),
		"The number of containers by the signal they are stopped with.",
		[]string{"signal"}, nil,
	)}
}

// set stores a copy of counts, with unknown signals summed up as [otherLabel].
func (s *stopSignals) set(counts map[string]int) {
	bounded := make(map[string]int, len(counts))
	for name, n := range counts {
		if !isSignal(name) {
			name = otherLabel
		}
		bounded[name] += n
	}
	s.counts.Store(&bounded)
}

// Describe implements [prometheus.Collector].
func (s *stopSignals) Describe(descs chan<- *prometheus.Desc) { descs <- s.desc }

// Collect implements [prometheus.Collector].
func (s *stopSignals) Collect(metrics chan<- prometheus.Metric) {
	counts := s.counts.Load()
	if counts == nil {
		return
	}
	for name, n := range *counts {
		metrics <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(n), name)
	}
}

// isSignal reports whether name is a signal of the Kubernetes API (v1.Signal,
// KEP-4960).
func isSignal(name string) bool {
	switch name {
	case "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE",
		"SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL",
		"SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS",
		"SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1",
		"SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ",
		"SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5",
		"SIGRTMIN+6", "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9", "SIGRTMIN+10",
		"SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15",
		"SIGRTMAX-14", "SIGRTMAX-13", "SIGRTMAX-12", "SIGRTMAX-11", "SIGRTMAX-10",
		"SIGRTMAX-9", "SIGRTMAX-8", "SIGRTMAX-7", "SIGRTMAX-6", "SIGRTMAX-5",
		"SIGRTMAX-4", "SIGRTMAX-3", "SIGRTMAX-2", "SIGRTMAX-1", "SIGRTMAX":
		return true
	default:
		return false
	}
}
