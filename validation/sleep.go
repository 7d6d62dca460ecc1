package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// sleep checks how long a hook sleeps (KEP-3960, KEP-4818). A sleep as long as
// the grace is allowed although the texts say less; both texts are the API
// server's, the gate that does not exist in the second one included. Without a
// grace, which is an error of its own, nothing is said. A postStart hook is held
// to the same limits, although it spends nothing of the grace.
func (c *checker) sleep(sleep *v1.SleepAction, at place) {
	if c.opts.NoSleepAction {
		c.forbidden(at, "may not be set when feature gate PodLifecycleSleepAction is disabled")
		return
	}
	if c.grace == nil {
		return
	}
	least, text := int64(0), "must be non-negative and less than terminationGracePeriodSeconds (%d)"
	if c.opts.NoZeroSleep {
		least, text = 1, "must be greater than 0 and less than terminationGracePeriodSeconds (%d). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
	}
	if sleep.Seconds < least || sleep.Seconds > *c.grace {
		c.invalid(at, sleep.Seconds, fmt.Sprintf(text, *c.grace))
	}
}
