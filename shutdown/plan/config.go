package plan

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config says how long the pods of a node have when its host shuts down. It is
// the part of a KubeletConfiguration that concerns the shutdown, with the same
// JSON names. It has two forms: a total with a share for critical pods, or a
// list by priority. The zero value is the kubelet's default: no graceful
// shutdown.
type Config struct {
	// ShutdownGracePeriod is the time of all pods together; 0: off. Fractions of
	// a second are cut off.
	ShutdownGracePeriod metav1.Duration `json:"shutdownGracePeriod,omitzero"`
	// ShutdownGracePeriodCriticalPods is the part of it, at its end, that is kept
	// for pods of priority 2000000000 and above; 0: they are killed at once.
	ShutdownGracePeriodCriticalPods metav1.Duration `json:"shutdownGracePeriodCriticalPods,omitzero"`
	// ShutdownGracePeriodByPodPriority is the other form, in any order; nil or
	// empty: not used (KEP-2712).
	ShutdownGracePeriodByPodPriority []PodPriorityGracePeriod `json:"shutdownGracePeriodByPodPriority,omitempty"`
}

// PodPriorityGracePeriod is the time of the pods from one priority up to the
// next one of the list.
type PodPriorityGracePeriod struct {
	// Priority is the lowest priority of these pods.
	Priority int32 `json:"priority"`
	// ShutdownGracePeriodSeconds is how long they have; 0 or less: they are
	// killed at once.
	ShutdownGracePeriodSeconds int64 `json:"shutdownGracePeriodSeconds"`
}

// Validate finds what the kubelet refuses in a configuration (its
// ValidateKubeletConfiguration), with its texts and in its order; several problems
// are joined. priorityGate tells whether GracefulNodeShutdownBasedOnPodPriority is
// on.
func (c Config) Validate(priorityGate bool) error {
	return errors.Join(c.validateTotal(), c.validateByPriority(priorityGate))
}

// ValidateWithoutGate is Validate where the gate GracefulNodeShutdown is off: then
// the form of two fields is refused too.
func (c Config) ValidateWithoutGate(priorityGate bool) error {
	var off error
	if c.hasTotal() {
		off = errors.New("invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown")
	}
	return errors.Join(c.validateTotal(), off, c.validateByPriority(priorityGate))
}

// validateTotal checks the form of two fields. A duration stands in braces, as
// the kubelet prints it.
func (c Config) validateTotal() error {
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

// validateByPriority checks that the list is allowed and that it stands alone.
func (c Config) validateByPriority(gate bool) error {
	if len(c.ShutdownGracePeriodByPodPriority) == 0 {
		return nil
	}
	if !gate {
		return errors.New("invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority")
	}
	if c.hasTotal() {
		return errors.New("invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time")
	}
	return nil
}

// hasTotal tells whether the form of two fields is used.
func (c Config) hasTotal() bool {
	return c.ShutdownGracePeriod.Duration > 0 || c.ShutdownGracePeriodCriticalPods.Duration > 0
}
