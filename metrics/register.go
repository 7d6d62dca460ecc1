package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubegrace/kubegrace/internal/nilcheck"
)

// alphaPrefix is the prefix that k8s.io/component-base/metrics adds to the help texts of the
// kubelet's series. A series can be shared with a kubelet in the same registry only if the
// help texts are equal.
const alphaPrefix = "[ALPHA] "

// Counters and gauges are interfaces, because a shared collector of the kubelet has a type of
// k8s.io/component-base/metrics.
type (
	counter interface{ Add(value float64) }
	gauge   interface{ Set(value float64) }
)

// registration registers the collectors of one handle: all or none.
type registration struct {
	reg   prometheus.Registerer  // nil: nothing is registered
	added []prometheus.Collector // what this registration has registered, without shared collectors
	errs  []error
}

// newRegistration returns a registration. It has an error, and registers nothing, if the registerer holds a nil pointer
// or the options are invalid.
func newRegistration(reg prometheus.Registerer, opts Options) *registration {
	if err := errors.Join(nilcheck.Option("the registerer", reg), opts.validate()); err != nil {
		return &registration{errs: []error{err}}
	}
	return &registration{reg: reg}
}

// registerOrFind registers a collector and returns it. If the registerer already has a
// collector with the same description, the series is shared: the result is the existing
// collector. If that is not a C, finish returns an error.
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
	result, isC := registered.(C)
	if !isC {
		r.errs = append(r.errs, fmt.Errorf("%s: is registered as a %T", describe(collector), registered))
	}
	return result
}

// describe formats the description of a collector of one series, for an error.
func describe(c prometheus.Collector) string {
	descs := make(chan *prometheus.Desc, 1)
	c.Describe(descs)
	return (<-descs).String()
}

// finish returns the joined errors of the registration. If there are any, it unregisters what
// this registration has added, so that a failed New function leaves nothing behind.
func (r *registration) finish() error {
	if len(r.errs) == 0 {
		return nil
	}
	for _, c := range r.added {
		r.reg.Unregister(c)
	}
	return fmt.Errorf("failed to register metrics: %w", errors.Join(r.errs...))
}
