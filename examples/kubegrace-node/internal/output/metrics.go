package output

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/machine"
)

// Metrics returns a report as Prometheus metrics. What is not known has no metric, because a 0 would look like
// a value.
func Metrics(r NodeReport) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	add := func(name, help string, value float64) {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "kubegrace", Subsystem: "node", Name: name, Help: help})
		gauge.Set(value)
		registry.MustRegister(gauge)
	}
	add("status", "What the next shutdown would do: 0 no pod loses time, 2 pods lose time, 3 nothing waits for the pods, 4 not enough could be seen.", float64(r.Verdict.Status))
	if r.Logind != nil {
		add("limit_seconds", "How long systemd-logind waits at most.", min(r.Logind.LimitSeconds, machine.Unlimited.Seconds()))
	}
	addNeeded := func(needed float64) { add("needed_seconds", "How long the agent asks the host to wait.", needed) }
	addPods := func(pods, cutShort int, lost int64) {
		add("pods", "How many pods the machine has.", float64(pods))
		add("pods_cut_short", "How many pods get less than they ask for.", float64(cutShort))
		add("lost_seconds", "The sum of what pods ask for and do not get.", float64(lost))
	}
	// The plan knows most, then the agent. Without both, the configuration still says how long the kubelet
	// asks to wait.
	if needed, known := r.NeededSeconds(); r.Plan != nil {
		addNeeded(r.Plan.NeededSeconds)
		addPods(r.Plan.Summary.PodCount, r.Plan.Summary.CutShort, r.Plan.Summary.LostSeconds)
	} else if r.Agent != nil {
		addNeeded(r.Agent.AskedSeconds)
		if !r.Agent.PodsUnknown {
			addPods(r.Agent.PodCount, r.Agent.CutShort, r.Agent.LostSeconds)
		}
	} else if known {
		addNeeded(needed)
	}
	return registry
}
