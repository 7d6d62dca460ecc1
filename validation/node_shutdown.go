package validation

import (
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// ValidateNodeShutdown checks the shutdown settings of a node. It returns the six errors
// of the kubelet, with its texts and in its order, and then errors for three mistakes that
// the kubelet accepts and that make its drain wrong: negative seconds, a priority that is
// listed twice, and seconds whose sum does not fit into a duration. All errors are joined,
// in a stable order; each contains its field and value.
func ValidateNodeShutdown(cfg plan.Config, opts Options) error {
	return cfg.Validate(!opts.NoGracefulNodeShutdown, !opts.NoShutdownByPodPriority)
}
