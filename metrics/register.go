package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubegrace/kubegrace/internal/nilcheck"
)

// alpha begins the help text of the series that the kubelet has too, because its
// /metrics shows their stability so (k8s.io/component-base/metrics). Prometheus takes a
// series for the same only if the help texts are equal.
const alpha = "[ALPHA] "

// The methods that a handle needs of its counters and gauges. They are interfaces
// because the registered collector may be the kubelet's, which is of a type of
// k8s.io/component-base/metrics.
type (
	counter interface{ Add(value float64) }
	gauge   interface{ Set(value float64) }
)

// registration registers the collectors of one handle: all or none.
type registration struct {
	reg   prometheus.Registerer  // nil: nothing is registered
	added []prometheus.Collector // those that were registered, not found
	errs  []error
}

// newRegistration returns a registration, with an error for a registerer that is a typed nil.
func newRegistration(reg prometheus.Registerer) *registration {
	if err := nilcheck.Option("the registerer", reg); err != nil {
		return &registration{errs: []error{err}}
	}
	return &registration{reg: reg}
}

// registerOrFind registers a collector and returns it, or the collector with the same
// description that the registerer has already. It is an error if that is no C.
func registerOrFind[C any](r *registration, collector prometheus.Collector) C {
	registered := collector
	if r.reg != nil {
		err := r.reg.Register(collector)
		var already prometheus.AlreadyRegisteredError
		switch {
		case err == nil:
			r.added = append(r.added, collector)
		case errors.As(err, &already):
			registered = already.ExistingCollector
		default:
			r.errs = append(r.errs, err)
		}
	}
	c, ok := registered.(C)
	if !ok {
		r.errs = append(r.errs, fmt.Errorf("%s: is registered as a %T", describe(collector), registered))
	}
	return c
}

// describe formats the only description of a collector.
func describe(c prometheus.Collector) string {
	descs := make(chan *prometheus.Desc, 1)
	c.Describe(descs)
	return (<-descs).String()
}

// finish returns the errors of all collectors that could not be registered, joined. If
// there are any, it unregisters those that were.
func (r *registration) finish() error {
	if len(r.errs) == 0 {
		return nil
	}
	for _, c := range r.added {
		r.reg.Unregister(c)
	}
	return fmt.Errorf("failed to register metrics: %w", errors.Join(r.errs...))
}
