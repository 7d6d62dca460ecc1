package output

import (
	"fmt"
	"math"
	"strings"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// secondsText returns a time for a sentence.
func secondsText(s float64) string {
	switch {
	case s >= 1e7:
		return "more than 100 days"
	case s == math.Trunc(s):
		return fmt.Sprintf("%.0f s", s)
	default:
		return fmt.Sprintf("%.1f s", s)
	}
}

// secondsCell returns a time for a column of a table, in at most six characters.
func secondsCell(s float64) string {
	switch {
	case s >= 1e7:
		return ">100d"
	case s >= 1e5:
		return fmt.Sprintf("%.0fh", s/3600)
	case s == math.Trunc(s):
		return fmt.Sprintf("%.0fs", s)
	default:
		return fmt.Sprintf("%.1fs", s)
	}
}

// countText returns a number of things, in the plural unless it is 1.
func countText(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// configText returns the shutdown fields of a configuration, for a sentence.
func configText(c plan.Config) string {
	if len(c.ShutdownGracePeriodByPodPriority) > 0 {
		parts := make([]string, len(c.ShutdownGracePeriodByPodPriority))
		for i, bucket := range c.ShutdownGracePeriodByPodPriority {
			parts[i] = fmt.Sprintf("%d s from priority %d", bucket.ShutdownGracePeriodSeconds, bucket.Priority)
		}
		return strings.Join(parts, ", ")
	}
	if c.ShutdownGracePeriod.Duration == 0 {
		return "no graceful node shutdown"
	}
	return fmt.Sprintf("%s, of them %s for critical pods", secondsText(c.ShutdownGracePeriod.Seconds()), secondsText(c.ShutdownGracePeriodCriticalPods.Seconds()))
}
