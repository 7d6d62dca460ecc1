package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Shutdown shows the node's graceful shutdown. A nil *Shutdown shows nothing;
// all methods may be called concurrently.
type Shutdown struct {
	start, end gauge
	held       gauge
	delay      *prometheus.GaugeVec
	buckets    prometheus.Histogram
	pods       *prometheus.CounterVec
	refused    counter
	outcomes   []string // the values that the label of pods may have, Other aside
}

// NewShutdown makes the collectors of the shutdown package and registers them
// with reg. A nil reg registers nothing. A series that reg has already with the same
// description is shared. It is an error if reg has one of that name with another
// description, and then none is registered.
func NewShutdown(reg prometheus.Registerer, opts Options) (*Shutdown, error) {
	r := &registration{reg: reg}
	namespace := opts.prefix()
	show := func(name, help string) gauge {
		return share[gauge](r, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}))
	}
	m := &Shutdown{
		// These two are the kubelet's.
		start: show("graceful_shutdown_start_time_seconds",
			alpha+"Last graceful shutdown start time since unix epoch in seconds"),
		end: show("graceful_shutdown_end_time_seconds",
			alpha+"Last graceful shutdown end time since unix epoch in seconds"),
		held: show("graceful_shutdown_inhibitor_held",
			"Whether the lock that delays the host's shutdown is held (1) or not (0)"),
		delay: share[*prometheus.GaugeVec](r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_delay_seconds",
			Help:      "How long the host was asked to delay its shutdown, and how long it does",
		}, []string{"kind"})),
		buckets: share[prometheus.Histogram](r, prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_bucket_duration_seconds",
			Help:      "How long the buckets of graceful shutdowns took, those without pods left out",
			Buckets:   []float64{.1, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600},
		})),
		pods: share[*prometheus.CounterVec](r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_pods_total",
			Help:      "Pods that graceful shutdowns have killed, by the outcome that the killer names",
		}, []string{"outcome"})),
		outcomes: podOutcomes(),
		refused: share[counter](r, prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_pods_refused_total",
			Help:      "Admissions of pods that were refused because the node was shutting down",
		})),
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// Times shows when the last graceful shutdown began and ended, in whole seconds
// since the epoch. A zero time is shown as 0: a shutdown that has begun and not
// ended has a zero end. An end before the start, as after a step of the clock, is
// shown as the start.
func (m *Shutdown) Times(start, end time.Time) {
	if m == nil {
		return
	}
	if !end.IsZero() && end.Before(start) {
		end = start
	}
	m.start.Set(seconds(start))
	m.end.Set(seconds(end))
}

// Inhibitor shows whether the host is being held.
func (m *Shutdown) Inhibitor(held bool) {
	switch {
	case m == nil:
	case held:
		m.held.Set(1)
	default:
		m.held.Set(0)
	}
}

// Delay shows how long the host was asked to wait, and how long it does.
func (m *Shutdown) Delay(requested, granted time.Duration) {
	if m == nil {
		return
	}
	m.delay.WithLabelValues("requested").Set(requested.Seconds())
	m.delay.WithLabelValues("granted").Set(granted.Seconds())
}

// Bucket counts a bucket with pods and how long it took, unmount and flush
// included.
func (m *Shutdown) Bucket(took time.Duration) {
	if m != nil {
		m.buckets.Observe(took.Seconds())
	}
}

// podOutcomes are the values of the label outcome: those of package lifecycle, the
// manager's own for a killer that names none, and Other for all else, so that a killer
// cannot make a series for each pod.
func podOutcomes() []string {
	return []string{"Graceful", "GraceExceeded", "Forced", "RuntimeStuck", "NotFound", "LeftRunning", "Ended", "Failed"}
}

// PodKilled counts a pod by the outcome that the killer names: one of package lifecycle's,
// Ended or Failed. Any other counts as Other.
func (m *Shutdown) PodKilled(outcome string) {
	if m == nil {
		return
	}
	if !slices.Contains(m.outcomes, outcome) {
		outcome = "Other"
	}
	m.pods.WithLabelValues(outcome).Inc()
}

// PodsRefused counts pods that were not admitted because the node shuts down: one,
// or those that an agent before this one has counted.
func (m *Shutdown) PodsRefused(pods uint64) {
	if m != nil {
		m.refused.Add(float64(pods))
	}
}

// seconds are whole seconds since the epoch, and 0 for the zero time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
