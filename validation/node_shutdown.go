package validation

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// byPriorityField is the list that the kubelet hardly looks at.
const byPriorityField = "shutdownGracePeriodByPodPriority"

// ValidateNodeShutdown finds what is wrong with the shutdown settings of a node:
// the six problems that the kubelet refuses, with its texts and in its order, and
// then what the kubelet lets pass and drains wrongly for. Those are negative
// seconds, a priority that is listed twice, and seconds that together are more than
// a duration can hold. All problems are in the error, joined, in a stable order,
// and each names its field and value.
func ValidateNodeShutdown(cfg plan.Config, opts Options) error {
	list := cfg.ShutdownGracePeriodByPodPriority
	return errors.Join(
		refusedByKubelet(cfg, opts),
		negativeSeconds(list),
		duplicatePriorities(list),
		overflow(list),
	)
}

// refusedByKubelet are the kubelet's own errors.
func refusedByKubelet(cfg plan.Config, opts Options) error {
	if opts.NoGracefulNodeShutdown {
		return cfg.ValidateWithoutGate(!opts.NoShutdownByPodPriority)
	}
	return cfg.Validate(!opts.NoShutdownByPodPriority)
}

// negativeSeconds: the kubelet's timer for such a bucket fires at once, and the
// sum that it asks the host for is too small for the other buckets.
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

// duplicatePriorities: only one of two such buckets would ever have pods, and the
// time of the other one would be waited for by nobody.
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

// overflow: the host would be asked for a delay that is not the sum. The entry
// that goes beyond the limit is named, and no later one; negative ones count as 0.
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
