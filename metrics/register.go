package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// alpha begins the help text of every series that the kubelet has itself: its /metrics
// shows the stability of a series so (k8s.io/component-base/metrics). The text is a part of
// the description, so that the kubelet's own collector is found by it.
const alpha = "[ALPHA] "

// The interfaces of series that may be the kubelet's own, which are wrapped by the types
// of k8s.io/component-base/metrics.
type (
	counter interface{ Add(value float64) }
	gauge   interface{ Set(value float64) }
)

// registration registers the collectors of one handle: all or none.
type registration struct {
	reg   prometheus.Registerer // nil: nothing is registered
	added []prometheus.Collector
	errs  []error
}

// share registers a collector and gives it, or the one with the same description that
// the registerer has already. One that is there and is no C is an error.
func share[C any](r *registration, own prometheus.Collector) C {
	used := own
	if r.reg != nil {
		err := r.reg.Register(own)
		var already prometheus.AlreadyRegisteredError
		switch {
		case err == nil:
			r.added = append(r.added, own)
		case errors.As(err, &already):
			used = already.ExistingCollector
		default:
			r.errs = append(r.errs, err)
		}
	}
	c, ok := used.(C)
	if !ok {
		r.errs = append(r.errs, fmt.Errorf("%s: is registered as a %T", describe(own), used))
	}
	return c
}

// describe names the series of a collector that has one description.
func describe(c prometheus.Collector) string {
	descs := make(chan *prometheus.Desc, 1)
	c.Describe(descs)
	return (<-descs).String()
}

// finish gives every reason why a collector could not be registered, joined; the
// registerer is then as it was.
func (r *registration) finish() error {
	if len(r.errs) == 0 {
		return nil
	}
	for _, c := range r.added {
		r.reg.Unregister(c)
	}
	return fmt.Errorf("failed to register metrics: %w", errors.Join(r.errs...))
}
