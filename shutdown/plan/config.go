package plan

import (
	"errors"
	"fmt"
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
