package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// register registers all collectors or none: after a failure the registerer is
// as it was, and every reason is in the error. A nil registerer takes nothing.
func register(reg prometheus.Registerer, collectors ...prometheus.Collector) error {
	if reg == nil {
		return nil
	}
	var errs []error
	registered := make([]prometheus.Collector, 0, len(collectors))
	for _, c := range collectors {
		if err := reg.Register(c); err != nil {
			errs = append(errs, err)
			continue
		}
		registered = append(registered, c)
	}
	if len(errs) == 0 {
		return nil
	}
	for _, c := range registered {
		reg.Unregister(c)
	}
	return fmt.Errorf("failed to register metrics: %w", errors.Join(errs...))
}
