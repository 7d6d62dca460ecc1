package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// otherOutcome replaces every outcome that [Shutdown] does not know.
const otherOutcome = "Other"

// Shutdown shows the graceful shutdown of a node. Make one with [NewShutdown]. A nil
// or zero one shows nothing; all methods may be called concurrently.
type Shutdown struct {
	start, end gauge
	held       gauge
	delay      *prometheus.GaugeVec
	buckets    prometheus.Histogram
	pods       *prometheus.CounterVec
	refused    counter
	outcomes   []string // that pods may be labelled with, besides otherOutcome
}

// isMade reports whether NewShutdown has made the handle. The zero one shows nothing either.
func (m *Shutdown) isMade() bool { return m != nil && m.pods != nil }

// NewShutdown makes the collectors of package shutdown and registers them with reg. A
// nil reg registers nothing. A series that reg has already, with the same description,
// is shared. If reg has a series of that name with another description, the result is an
// error, and nothing is registered.
func NewShutdown(reg prometheus.Registerer, opts Options) (*Shutdown, error) {
	r := newRegistration(reg)
	namespace := opts.namespace()
	newGauge := func(name, help string) gauge {
		return registerOrFind[gauge](r, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}))
	}
	m := &Shutdown{
		// The kubelet has these two.
		start: newGauge("graceful_shutdown_start_time_seconds",
			alpha+"Last graceful shutdown start time since unix epoch in seconds"),
		end: newGauge("graceful_shutdown_end_time_seconds",
			alpha+"Last graceful shutdown end time since unix epoch in seconds"),
		held: newGauge("graceful_shutdown_inhibitor_held",
			"Whether the lock that delays the host's shutdown is held (1) or not (0)"),
		delay: registerOrFind[*prometheus.GaugeVec](r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_delay_seconds",
			Help:      "How long the host was asked to delay its shutdown, and how long it does",
		}, []string{"kind"})),
		buckets: registerOrFind[prometheus.Histogram](r, prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_bucket_duration_seconds",
			Help:      "How long the buckets of graceful shutdowns took, those without pods left out",
			Buckets:   []float64{.1, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600},
		})),
		pods: registerOrFind[*prometheus.CounterVec](r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_pods_total",
			Help:      "Pods that graceful shutdowns have killed, by the outcome that the killer names",
		}, []string{"outcome"})),
		outcomes: podOutcomes(),
		refused: registerOrFind[counter](r, prometheus.NewCounter(prometheus.CounterOpts{
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

// Times sets when the last graceful shutdown began and ended, in whole seconds since the
// epoch (kubelet_graceful_shutdown_start_time_seconds and
// kubelet_graceful_shutdown_end_time_seconds). A zero time is shown as 0: pass a zero end
// for a shutdown that has not ended. An end before the start, as after the clock was set
// back, is shown as the start.
func (m *Shutdown) Times(start, end time.Time) {
	if !m.isMade() {
		return
	}
	if !end.IsZero() && end.Before(start) {
		end = start
	}
	m.start.Set(seconds(start))
	m.end.Set(seconds(end))
}

// Inhibitor sets whether the lock that delays the host's shutdown is held
// (kubelet_graceful_shutdown_inhibitor_held).
func (m *Shutdown) Inhibitor(held bool) {
	switch {
	case !m.isMade():
	case held:
		m.held.Set(1)
	default:
		m.held.Set(0)
	}
}

// Delay sets for how long the host was asked to delay its shutdown, and for how long it
// does (kubelet_graceful_shutdown_delay_seconds).
func (m *Shutdown) Delay(requested, granted time.Duration) {
	if !m.isMade() {
		return
	}
	m.delay.WithLabelValues("requested").Set(requested.Seconds())
	m.delay.WithLabelValues("granted").Set(granted.Seconds())
}

// Bucket records how long a bucket with pods took, including the wait for unmounts and
// final statuses (kubelet_graceful_shutdown_bucket_duration_seconds).
func (m *Shutdown) Bucket(took time.Duration) {
	if m.isMade() {
		m.buckets.Observe(took.Seconds())
	}
}

// podOutcomes returns the known outcomes of a killed pod: those of package lifecycle,
// then Ended and Failed, which package shutdown uses for a killer that returns none.
func podOutcomes() []string {
	return []string{"Graceful", "GraceExceeded", "Forced", "RuntimeStuck", "NotFound", "LeftRunning", "Ended", "Failed"}
}

// PodKilled counts a pod by the outcome that its killer returned
// (kubelet_graceful_shutdown_pods_total): one of package lifecycle, Ended or Failed. Any
// other outcome is counted as "Other", so that a killer cannot make a series for each pod.
func (m *Shutdown) PodKilled(outcome string) {
	if !m.isMade() {
		return
	}
	if !slices.Contains(m.outcomes, outcome) {
		outcome = otherOutcome
	}
	m.pods.WithLabelValues(outcome).Inc()
}

// PodsRefused adds pods that were not admitted because the node is shutting down
// (kubelet_graceful_shutdown_pods_refused_total). An agent that restarted adds those that
// it had counted before.
func (m *Shutdown) PodsRefused(pods uint64) {
	if m.isMade() {
		m.refused.Add(float64(pods))
	}
}

// seconds returns whole seconds since the epoch, 0 for the zero time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
