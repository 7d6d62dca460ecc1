package validation

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// byPriorityField is the field of a KubeletConfiguration with the list that these checks
// are about.
const byPriorityField = "shutdownGracePeriodByPodPriority"

// ValidateNodeShutdown checks the shutdown settings of a node. It returns the six errors
// of the kubelet, with its texts and in its order, and then errors for three mistakes that
// the kubelet accepts and that make its drain wrong: negative seconds, a priority that is
// listed twice, and seconds whose sum does not fit into a duration. All errors are joined,
// in a stable order; each contains its field and value.
func ValidateNodeShutdown(cfg plan.Config, opts Options) error {
	list := cfg.ShutdownGracePeriodByPodPriority
	return errors.Join(
		refusedByKubelet(cfg, opts),
		negativeSeconds(list),
		duplicatePriorities(list),
		overflow(list),
	)
}

// refusedByKubelet returns the kubelet's own errors.
func refusedByKubelet(cfg plan.Config, opts Options) error {
	if opts.NoGracefulNodeShutdown {
		return cfg.ValidateWithoutGate(!opts.NoShutdownByPodPriority)
	}
	return cfg.Validate(!opts.NoShutdownByPodPriority)
}

// negativeSeconds returns an error for each entry with negative seconds. In the kubelet,
// the timer of such a bucket fires at once, and the delay that it requests from the host
// is too short for the other buckets.
func negativeSeconds(list []plan.PodPriorityGracePeriod) error {
	var errs []error
	for i, p := range list {
		if p.ShutdownGracePeriodSeconds < 0 {
			errs = append(errs, fmt.Errorf("invalid configuration: %s[%d].shutdownGracePeriodSeconds %d must not be negative",
				byPriorityField, i, p.ShutdownGracePeriodSeconds))
		}
	}
	return errors.Join(errs...)
}

// duplicatePriorities returns an error for each entry whose priority an earlier entry
// has. Only one of the two buckets would ever have pods.
func duplicatePriorities(list []plan.PodPriorityGracePeriod) error {
	var errs []error
	seen := make(map[int32]int, len(list))
	for i, p := range list {
		first, again := seen[p.Priority]
		if !again {
			seen[p.Priority] = i
			continue
		}
		errs = append(errs, fmt.Errorf("invalid configuration: %s[%d].priority %d is that of %s[%d] already",
			byPriorityField, i, p.Priority, byPriorityField, first))
	}
	return errors.Join(errs...)
}

// overflow returns an error for the first entry with which the sum of the seconds exceeds
// a time.Duration. The delay requested from the host would be wrong then. Negative seconds
// count as 0.
func overflow(list []plan.PodPriorityGracePeriod) error {
	const most = int64(math.MaxInt64 / time.Second)
	var sum int64
	for i, p := range list {
		seconds := max(p.ShutdownGracePeriodSeconds, 0)
		if seconds > most-sum {
			return fmt.Errorf("invalid configuration: %s[%d].shutdownGracePeriodSeconds %d brings the sum above %d, the most that a duration holds",
				byPriorityField, i, p.ShutdownGracePeriodSeconds, most)
		}
		sum += seconds
	}
	return nil
}
