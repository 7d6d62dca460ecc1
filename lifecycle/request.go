package lifecycle

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Request says how to terminate a pod. The zero value stops the containers that the [Runtime] lists,
// with the pod's own grace period.
type Request struct {
	// GracePeriodSeconds overrides the grace period of the pod's spec; nil: no override. A pod without
	// either has 1 s, unlike one from an API server, whose default is 30. Values below 1 count as 1. The
	// grace period of a deletion, unless it is 0, and that of a termination in progress never get longer
	// (the kubelet's calculateEffectiveGracePeriod, [graceperiod.ForPod]).
	//
	// With Containers, the value is used unchanged; 0 or less leaves no time for a hook. nil then means
	// the pod's own grace period, or 2 s without one (the kubelet's killContainer,
	// [graceperiod.ForContainer]).
	GracePeriodSeconds *int64
	// Containers, if not nil, are exactly the containers to stop. A successful StopContainer then proves
	// that its container has ended. nil: the runtime lists the containers, and only a list proves that a
	// container has ended.
	//
	// Set it in a kubelet fork, whose caller passes the running pod, and for a runtime that cannot list. Name no
	// container that has ended: it counts as a new run, and its hook runs again.
	// If the newest list has a later run with a container's ID, the container is not stopped and is
	// [OutcomeNotFound].
	Containers []Container
	// OneAttempt makes a single StopContainer call per container, for callers that retry by themselves,
	// as the kubelet does. If the call fails, the container is [OutcomeRuntimeStuck] and blocks sidecars
	// until the deadline; no FailedKillPod event is recorded. It has no effect on a stop that another request has
	// begun: that request decides how often StopContainer is called.
	//
	// The caller tries again with another request. That one records the Killing event again, but does not
	// run the hook again. If the StopContainer call returned, with an error or while the runtime still listed
	// the container, the grace period starts anew. If the call has not returned, the old deadline stays.
	OneAttempt bool
	// Hooks runs the hooks of the containers that this request begins to stop, for programs that
	// replace their runner; nil: [TerminatorOptions].Hooks.
	Hooks HandlerRunner
}

// grace returns the pod's grace period in seconds for this request. current is the grace period of the
// termination in progress; 0 if there is none. [graceperiod.ForPod] computes it for a request that names no containers.
// For one that names them, it is the first that is set, without any limit, as in the kubelet: the override, current, the
// pod's own.
func (r *Request) grace(pod *v1.Pod, current int64) int64 {
	switch {
	case r.Containers == nil:
		seconds, _ := graceperiod.ForPod(pod, current, r.GracePeriodSeconds)
		return seconds
	case r.GracePeriodSeconds != nil:
		return *r.GracePeriodSeconds
	case current != 0:
		return current
	default:
		return graceperiod.ForContainer(pod, nil, graceperiod.ReasonUnknown) // nil: no container, whose probes could matter
	}
}

// longestLikelySeconds is a year. A longer grace period is probably a time.Duration, which counts nanoseconds.
const longestLikelySeconds = 365 * 24 * 60 * 60

// graceWarning returns a line for the log if the grace period of a new termination, in seconds, is probably a mistake; "" if
// it is not.
func (r *Request) graceWarning(pod *v1.Pod, granted int64) string {
	isGiven := pod.Spec.TerminationGracePeriodSeconds != nil || pod.DeletionGracePeriodSeconds != nil || r.GracePeriodSeconds != nil
	switch {
	case granted > longestLikelySeconds:
		return "The grace period is longer than a year: was a time.Duration passed as seconds?"
	case !isGiven:
		return "The pod has no grace period and gets the minimum: set terminationGracePeriodSeconds, which is 30 by default in the API server"
	default:
		return ""
	}
}

// ContainerRequest says how to stop one container. The zero value uses the pod's grace period.
type ContainerRequest struct {
	// Reason selects the grace period, because a probe may have its own ([graceperiod.ForContainer]);
	// "" means [graceperiod.ReasonUnknown].
	Reason graceperiod.KillReason
	// GracePeriodSeconds overrides the grace period; nil: that of Reason. 0 or less leaves no time for
	// a hook.
	GracePeriodSeconds *int64
	// OneAttempt stops the container with one call to the runtime, without repeats, as in [Request].
	OneAttempt bool
	// Hooks runs the hook; nil: [TerminatorOptions].Hooks.
	Hooks HandlerRunner
	// Message is the message of the Killing event; "" means the kubelet's message for Reason. As in the
	// kubelet, the container's ID in it is replaced by the name.
	Message string
}

// grace returns the grace period in seconds of the container with this name: the override, else that of
// Reason.
func (r *ContainerRequest) grace(pod *v1.Pod, name string) int64 {
	if r.GracePeriodSeconds != nil {
		return *r.GracePeriodSeconds
	}
	spec, _ := findContainer(pod, name)
	return graceperiod.ForContainer(pod, spec, r.Reason)
}

// message returns the message of the Killing event: the request's, else the kubelet's for a failed
// probe, else "", which stands for the kubelet's default.
func (r *ContainerRequest) message(pod *v1.Pod, name string) string {
	if r.Message != "" {
		return r.Message
	}
	var probe string
	switch r.Reason {
	case graceperiod.ReasonLivenessProbe:
		probe = "liveness"
	case graceperiod.ReasonStartupProbe:
		probe = "startup"
	default:
		return ""
	}
	_, role := findContainer(pod, name) // the kubelet's message calls a sidecar an init container
	switch {
	case role.isSidecar():
		return fmt.Sprintf("Init container %s failed %s probe", name, probe)
	case pod.Spec.RestartPolicy == v1.RestartPolicyNever:
		return fmt.Sprintf("Container %s failed %s probe", name, probe)
	default:
		return fmt.Sprintf("Container %s failed %s probe, will be restarted", name, probe)
	}
}

// checkContainers returns the first error of a list of containers: an invalid container, or two containers with
// different names and one ID. Two runs of one container may have the same ID.
func checkContainers(containers []Container) error {
	nameOf := make(map[string]string, len(containers))
	for _, c := range containers {
		if err := c.check(); err != nil {
			return err
		}
		if name, known := nameOf[c.ID]; known && name != c.Name {
			return fmt.Errorf("container %q: ID: must be unique, %q is that of container %q", c.Name, c.ID, name)
		}
		nameOf[c.ID] = c.Name
	}
	return nil
}

// check returns an error if the container's ID is missing, or has a prefix such as "containerd://", with
// which the runtime would not find it.
func (c Container) check() error {
	if c.ID == "" {
		return fmt.Errorf("container %q: ID: must be set", c.Name)
	}
	if scheme, _, found := strings.Cut(c.ID, "://"); found {
		return fmt.Errorf("container %q: ID: must not have the prefix %q, is %q", c.Name, scheme+"://", c.ID)
	}
	return nil
}
