package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Shutdown records the graceful shutdowns of a node. Create one with [NewShutdown]. A nil or
// zero Shutdown records nothing. All methods may be called concurrently.
type Shutdown struct {
	start, end gauge
	held       gauge
	delay      *prometheus.GaugeVec
	buckets    prometheus.Histogram
	pods       *prometheus.CounterVec
	refused    counter
	outcomes   []string // the allowed labels of pods, besides otherLabel
}

// isMade reports whether NewShutdown has created the handle. If not, all methods do nothing.
func (m *Shutdown) isMade() bool { return m != nil && m.pods != nil }

// NewShutdown creates the collectors of package shutdown and registers them with reg. With a nil
// reg they are not registered. A series that reg already has with the same description is shared.
// If reg has a series of the same name with another description, NewShutdown returns an error and
// registers nothing.
func NewShutdown(reg prometheus.Registerer, opts Options) (*Shutdown, error) {
	r := newRegistration(reg, opts)
	namespace := opts.namespace()
	newGauge := func(name, help string) gauge {
		return registerOrFind[gauge](r, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}))
	}
	m := &Shutdown{
		// The kubelet has start and end too, with these texts.
		start: newGauge("graceful_shutdown_start_time_seconds",
			alphaPrefix+"Last graceful shutdown start time since unix epoch in seconds"),
		end: newGauge("graceful_shutdown_end_time_seconds",
			alphaPrefix+"Last graceful shutdown end time since unix epoch in seconds"),
		held: newGauge("graceful_shutdown_inhibitor_held",
			"Whether the inhibitor lock is held (1) or not (0)"),
		delay: registerOrFind[*prometheus.GaugeVec](r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_delay_seconds",
			Help:      "Delay of the host's shutdown in seconds, as requested and as granted",
		}, []string{"kind"})),
		buckets: registerOrFind[prometheus.Histogram](r, prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_bucket_duration_seconds",
			Help:      "Duration of the buckets of graceful shutdowns in seconds, without empty buckets",
			Buckets:   []float64{.1, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600},
		})),
		pods: registerOrFind[*prometheus.CounterVec](r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_pods_total",
			Help:      "Pods killed by graceful shutdowns, by outcome",
		}, []string{"outcome"})),
		outcomes: podOutcomes(),
		refused: registerOrFind[counter](r, prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "graceful_shutdown_pods_refused_total",
			Help:      "Pods that were not admitted because the node was shutting down",
		})),
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// Times sets the start and end of the last graceful shutdown, in whole seconds since the
// epoch (kubelet_graceful_shutdown_start_time_seconds and
// kubelet_graceful_shutdown_end_time_seconds). A zero time is shown as 0: pass a zero end
// while the shutdown is in progress. If the clock was set back, so that end is before start,
// end is shown as start.
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

// Inhibitor sets whether the inhibitor lock is held
// (kubelet_graceful_shutdown_inhibitor_held).
func (m *Shutdown) Inhibitor(held bool) {
	if !m.isMade() {
		return
	}
	value := 0.0
	if held {
		value = 1
	}
	m.held.Set(value)
}

// Delay sets the delay of the host's shutdown, as requested from the host and as granted by
// it (kubelet_graceful_shutdown_delay_seconds).
func (m *Shutdown) Delay(requested, granted time.Duration) {
	if !m.isMade() {
		return
	}
	m.delay.WithLabelValues("requested").Set(requested.Seconds())
	m.delay.WithLabelValues("granted").Set(granted.Seconds())
}

// Bucket records the duration of a non-empty bucket, including the wait for unmounts and
// final statuses (kubelet_graceful_shutdown_bucket_duration_seconds).
func (m *Shutdown) Bucket(took time.Duration) {
	if m.isMade() {
		m.buckets.Observe(took.Seconds())
	}
}

// podOutcomes returns the outcomes of package lifecycle, and Ended and Failed, which package
// shutdown uses if a killer returns no outcome.
func podOutcomes() []string { return append(outcomes(), "Ended", "Failed") }

// PodKilled counts a killed pod by outcome (kubelet_graceful_shutdown_pods_total). outcome is a
// lifecycle.Outcome or, if the killer returned none, "Ended" for a pod that has ended and "Failed"
// for one that has not. Any other outcome is counted as "other".
func (m *Shutdown) PodKilled(outcome string) {
	if m.isMade() {
		m.pods.WithLabelValues(knownOrOther(outcome, m.outcomes...)).Inc()
	}
}

// PodsRefused adds to the number of pods that were not admitted because the node is shutting
// down (kubelet_graceful_shutdown_pods_refused_total).
func (m *Shutdown) PodsRefused(pods uint64) {
	if m.isMade() {
		m.refused.Add(float64(pods))
	}
}

// seconds returns t in whole seconds since the epoch, as the kubelet shows it; 0 for the zero
// time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
