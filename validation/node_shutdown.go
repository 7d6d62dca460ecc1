package validation

import (
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// ValidateNodeShutdown checks the shutdown settings of a node. It returns the kubelet's six
// errors, with its texts and in its order, and then errors for three mistakes that the kubelet
// accepts although they break its drain: negative seconds, a duplicate priority, and seconds
// whose sum overflows a time.Duration. All errors are joined in a stable order. Each names its
// field and value.
func ValidateNodeShutdown(cfg plan.Config, opts Options) error {
	return cfg.Validate(!opts.NoGracefulNodeShutdown, !opts.NoShutdownByPodPriority)
}
