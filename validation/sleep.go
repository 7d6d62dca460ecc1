package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// sleep checks the duration of a sleep hook (KEP-3960, KEP-4818). The messages are the API
// server's, with two mistakes: they say "less than", although a sleep as long as the grace
// period is valid, and the second one names a feature gate that does not exist. Without a
// grace period nothing is compared: its absence is an error of its own.
func (c *checker) sleep(sleep *v1.SleepAction, at lazyPath) {
	if c.opts.NoSleepAction {
		c.forbidden(at, "may not be set when feature gate PodLifecycleSleepAction is disabled")
		return
	}
	if c.grace == nil {
		return
	}
	minimum, text := int64(0), "must be non-negative and less than terminationGracePeriodSeconds (%d)"
	if c.opts.NoZeroSleep {
		minimum, text = 1, "must be greater than 0 and less than terminationGracePeriodSeconds (%d). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
	}
	if sleep.Seconds < minimum || sleep.Seconds > *c.grace {
		c.invalid(at, sleep.Seconds, fmt.Sprintf(text, *c.grace))
	}
}
