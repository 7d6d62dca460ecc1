package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Shutdown shows the node's graceful shutdown. A nil *Shutdown shows nothing;
// all methods may be called concurrently.
type Shutdown struct {
	start, end prometheus.Gauge
}

// NewShutdown makes the collectors of the shutdown package and registers them
// with reg. A nil reg registers nothing. It is an error if reg already has one
// of the series, and then none is registered.
func NewShutdown(reg prometheus.Registerer, opts Options) (*Shutdown, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: opts.prefix(), Name: name, Help: help})
	}
	m := &Shutdown{
		start: gauge("graceful_shutdown_start_time_seconds",
			"Last graceful shutdown start time since unix epoch in seconds"),
		end: gauge("graceful_shutdown_end_time_seconds",
			"Last graceful shutdown end time since unix epoch in seconds"),
	}
	if err := register(reg, m.start, m.end); err != nil {
		return nil, err
	}
	return m, nil
}

// Times shows when the last graceful shutdown began and ended, in whole seconds
// since the epoch. A zero time is shown as 0: a shutdown that has begun and not
// ended has a zero end.
func (m *Shutdown) Times(start, end time.Time) {
	if m == nil {
		return
	}
	m.start.Set(seconds(start))
	m.end.Set(seconds(end))
}

// seconds are whole seconds since the epoch, and 0 for the zero time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
