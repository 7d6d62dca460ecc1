package plan

import (
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config says how long pods have to terminate when their node shuts down. Its fields are the shutdown fields
// of a KubeletConfiguration, with the same JSON names. The two-field form (KEP-2000) has a total and the part
// of it for critical pods. The list form (KEP-2712) has seconds by priority. The zero value means no graceful
// shutdown, as for the kubelet.
type Config struct {
	// ShutdownGracePeriod is the total for all pods; 0: no graceful shutdown. Critical pods and the others
	// each get whole seconds of it, rounded down.
	ShutdownGracePeriod metav1.Duration `json:"shutdownGracePeriod,omitzero"`
	// ShutdownGracePeriodCriticalPods is the last part of ShutdownGracePeriod. It is for critical pods, those
	// of priority 2000000000 and above; 0: they are killed with a grace period of 0.
	ShutdownGracePeriodCriticalPods metav1.Duration `json:"shutdownGracePeriodCriticalPods,omitzero"`
	// ShutdownGracePeriodByPodPriority is the list form, in any order; empty: the two-field form is used.
	ShutdownGracePeriodByPodPriority []PodPriorityGracePeriod `json:"shutdownGracePeriodByPodPriority,omitempty"`
}

// PodPriorityGracePeriod is the time of the pods whose priority is at least Priority and less than the next higher
// Priority in the list.
type PodPriorityGracePeriod struct {
	// Priority is the lowest priority of these pods.
	Priority int32 `json:"priority"`
	// ShutdownGracePeriodSeconds is how long these pods have; 0 or less: they are killed with a grace
	// period of 0.
	ShutdownGracePeriodSeconds int64 `json:"shutdownGracePeriodSeconds"`
}

// Validate returns everything that is wrong with the configuration, joined. The first errors are those of the
// kubelet's ValidateKubeletConfiguration for these fields, with the same texts and in the same order. Then come
// errors for three mistakes in ShutdownGracePeriodByPodPriority. The kubelet accepts these, although they break
// its drain: negative seconds, duplicate priorities, and seconds whose sum overflows a time.Duration.
//
// graceful says whether the feature gate GracefulNodeShutdown is on, which ShutdownGracePeriod and
// ShutdownGracePeriodCriticalPods need, and byPriority whether GracefulNodeShutdownBasedOnPodPriority is on, which
// ShutdownGracePeriodByPodPriority needs. A field that is set although its gate is off is an error.
func (c Config) Validate(graceful, byPriority bool) error {
	var gateErr error
	if !graceful && c.usesTwoFieldForm() {
		gateErr = errors.New("invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown")
	}
	list := c.ShutdownGracePeriodByPodPriority
	return errors.Join(
		c.validateTwoFields(), gateErr, c.validateByPriority(byPriority),
		negativeSeconds(list), duplicatePriorities(list), overflow(list),
	)
}

// validateTwoFields validates the two-field form. Durations are in braces because the kubelet prints a
// metav1.Duration.
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

// validateByPriority returns an error if the list form is used although its feature gate is off, or together
// with the two-field form.
func (c Config) validateByPriority(gateOn bool) error {
	if len(c.ShutdownGracePeriodByPodPriority) == 0 { // the list form is not used
		return nil
	}
	if !gateOn {
		return errors.New("invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority")
	}
	if c.usesTwoFieldForm() {
		return errors.New("invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time")
	}
	return nil
}

// usesTwoFieldForm reports whether a field of the two-field form is set.
func (c Config) usesTwoFieldForm() bool {
	return c.ShutdownGracePeriod.Duration > 0 || c.ShutdownGracePeriodCriticalPods.Duration > 0
}

// byPriorityField is the JSON name of the list in a KubeletConfiguration.
const byPriorityField = "shutdownGracePeriodByPodPriority"

// negativeSeconds returns an error for each entry with negative seconds. The kubelet would not wait for such a
// bucket. It would also subtract the seconds from the delay that it requests, so that the host shuts down before
// the other buckets have ended.
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

// duplicatePriorities returns an error for each entry that repeats the priority of an earlier one: a pod is
// assigned by its priority, so that one of the two buckets never has pods.
func duplicatePriorities(list []PodPriorityGracePeriod) error {
	var errs []error
	seen := make(map[int32]int, len(list))
	for i, p := range list {
		first, isDuplicate := seen[p.Priority]
		if !isDuplicate {
			seen[p.Priority] = i
			continue
		}
		errs = append(errs, fmt.Errorf("invalid configuration: %s[%d].priority %d duplicates %s[%d]",
			byPriorityField, i, p.Priority, byPriorityField, first))
	}
	return errors.Join(errs...)
}

// overflow returns an error for the first entry at which the sum of the seconds overflows a time.Duration, which
// is the type of the requested delay. Negative seconds count as 0.
func overflow(list []PodPriorityGracePeriod) error {
	const maxSeconds = int64(math.MaxInt64 / time.Second)
	var sum int64
	for i, p := range list {
		seconds := max(p.ShutdownGracePeriodSeconds, 0)
		if seconds > maxSeconds-sum {
			return fmt.Errorf("invalid configuration: %s[%d].shutdownGracePeriodSeconds %d makes the sum exceed %d, the maximum of a duration",
				byPriorityField, i, p.ShutdownGracePeriodSeconds, maxSeconds)
		}
		sum += seconds
	}
	return nil
}
