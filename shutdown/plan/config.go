package plan

import (
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config says how long pods have to terminate when their node shuts down. It has the
// fields of a KubeletConfiguration that are about the shutdown, with the same JSON
// names. There are two forms: the two-field form has a total, of which a part is for
// critical pods; the list form has seconds by priority. The zero value means, as for the
// kubelet, that there is no graceful shutdown.
type Config struct {
	// ShutdownGracePeriod is the time of all pods together; 0: no graceful shutdown.
	// Fractions of a second are cut off.
	ShutdownGracePeriod metav1.Duration `json:"shutdownGracePeriod,omitzero"`
	// ShutdownGracePeriodCriticalPods is the last part of ShutdownGracePeriod, for
	// the pods of priority 2000000000 and above; 0: they are killed at once.
	ShutdownGracePeriodCriticalPods metav1.Duration `json:"shutdownGracePeriodCriticalPods,omitzero"`
	// ShutdownGracePeriodByPodPriority is the list form, in any order; nil or empty:
	// the two-field form is used (KEP-2712).
	ShutdownGracePeriodByPodPriority []PodPriorityGracePeriod `json:"shutdownGracePeriodByPodPriority,omitempty"`
}

// PodPriorityGracePeriod is the time of the pods whose priority is Priority or more, but
// less than the next Priority in the list.
type PodPriorityGracePeriod struct {
	// Priority is the lowest priority of these pods.
	Priority int32 `json:"priority"`
	// ShutdownGracePeriodSeconds is how long these pods have; 0 or less: they are
	// killed at once.
	ShutdownGracePeriodSeconds int64 `json:"shutdownGracePeriodSeconds"`
}

// Validate returns the errors of the kubelet's ValidateKubeletConfiguration for these
// fields, with the same texts and in the same order, joined. priorityGate says whether
// the feature gate GracefulNodeShutdownBasedOnPodPriority is on.
func (c Config) Validate(priorityGate bool) error {
	return errors.Join(c.validateTwoFields(), c.validateByPriority(priorityGate))
}

// ValidateWithoutGate is [Config.Validate] for a kubelet whose feature gate
// GracefulNodeShutdown is off: the two-field form is an error too.
func (c Config) ValidateWithoutGate(priorityGate bool) error {
	var gateOff error
	if c.hasTwoFields() {
		gateOff = errors.New("invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown")
	}
	return errors.Join(c.validateTwoFields(), gateOff, c.validateByPriority(priorityGate))
}

// validateTwoFields checks the two-field form. The texts have durations in braces
// because the kubelet prints a metav1.Duration.
func (c Config) validateTwoFields() error {
	total, critical := c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration
	var errs []error
	if critical > total {
		errs = append(errs, fmt.Errorf("invalid configuration: shutdownGracePeriodCriticalPods {%v} must be <= shutdownGracePeriod {%v}", critical, total))
	}
	if total != 0 && total < time.Second {
		errs = append(errs, fmt.Errorf("invalid configuration: shutdownGracePeriod {%v} must be either zero or otherwise >= 1 sec", total))
	}
	if critical != 0 && critical < time.Second {
		errs = append(errs, fmt.Errorf("invalid configuration: shutdownGracePeriodCriticalPods {%v} must be either zero or otherwise >= 1 sec", critical))
	}
	return errors.Join(errs...)
}

// validateByPriority checks that the list form is allowed, and used alone.
func (c Config) validateByPriority(gate bool) error {
	if len(c.ShutdownGracePeriodByPodPriority) == 0 {
		return nil
	}
	if !gate {
		return errors.New("invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority")
	}
	if c.hasTwoFields() {
		return errors.New("invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time")
	}
	return nil
}

// hasTwoFields reports whether a field of the two-field form is set.
func (c Config) hasTwoFields() bool {
	return c.ShutdownGracePeriod.Duration > 0 || c.ShutdownGracePeriodCriticalPods.Duration > 0
}

// ValidateList returns errors for three mistakes in ShutdownGracePeriodByPodPriority that the kubelet accepts and that
// make its drain wrong, joined: negative seconds, a priority that is listed twice, and seconds whose sum does not
// fit into a duration. Each error has its field and value.
func (c Config) ValidateList() error {
	list := c.ShutdownGracePeriodByPodPriority
	return errors.Join(negativeSeconds(list), duplicatePriorities(list), overflow(list))
}

// byPriorityField is the field of a KubeletConfiguration that ValidateList checks.
const byPriorityField = "shutdownGracePeriodByPodPriority"

// negativeSeconds returns an error for each entry with negative seconds. In the kubelet,
// the timer of such a bucket fires at once, and the delay that it requests from the host
// is too short for the other buckets.
func negativeSeconds(list []PodPriorityGracePeriod) error {
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
func duplicatePriorities(list []PodPriorityGracePeriod) error {
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
func overflow(list []PodPriorityGracePeriod) error {
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
