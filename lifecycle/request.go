package lifecycle

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Request says how to terminate a pod. The zero value stops what the [Runtime] lists, with the pod's own
// grace period.
type Request struct {
	// GracePeriodSeconds replaces the grace period of the pod's spec, in seconds; nil keeps it. A
	// value below 1 means 1. The grace period of a deleted pod never gets longer (the kubelet's
	// calculateEffectiveGracePeriod, [graceperiod.ForPod]).
	//
	// With Containers the value is used unchanged, and 0 or less leaves no time for a hook. nil then
	// means the pod's own grace period, or 2 s if it has none (the kubelet's killContainer,
	// [graceperiod.ForContainer]).
	GracePeriodSeconds *int64
	// Containers, if not nil, has exactly the containers to stop. A StopContainer that succeeds is
	// then proof that its container has ended. A kubelet fork, whose caller passes the running pod,
	// and a runtime that cannot list need this. A run is [OutcomeNotFound], and is not stopped, if the
	// newest list has a later run with its ID. nil: the runtime lists what runs, and only a list is
	// proof that a container has ended.
	Containers []Container
	// OneAttempt makes one StopContainer call for each container, for callers that retry by
	// themselves, as the kubelet does. A call that fails ends the stop as [OutcomeRuntimeStuck]. The
	// container still blocks sidecars until the deadline. No FailedKillPod event is recorded. The
	// next request records the Killing event again, but does not run the hook again. It grants a
	// new grace period, unless StopContainer has not returned.
	OneAttempt bool
	// Hooks runs the hooks of the containers that this request begins to stop; nil:
	// [TerminatorOptions].Hooks. It is for programs that change their runner.
	Hooks HandlerRunner
	// Message is the message of the Killing events; "" means "Stopping container NAME". A
	// container's ID in it is replaced by the name, as in the kubelet.
	Message string
}

// grace returns the grace period of the pod, in seconds. current is the grace period of the termination
// that is under way; 0 if none is.
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
		return graceperiod.ForContainer(pod, nil, graceperiod.ReasonUnknown)
	}
}

// ContainerRequest says how to stop a single container. The zero value stops it with the grace period of
// its pod.
type ContainerRequest struct {
	// Reason decides the grace period, because a failed probe may have its own
	// ([graceperiod.ForContainer]). "" means [graceperiod.ReasonUnknown].
	Reason graceperiod.KillReason
	// GracePeriodSeconds replaces the grace period, in seconds; nil: the one for Reason. 0 or less
	// leaves no time for a hook.
	GracePeriodSeconds *int64
	// OneAttempt and Hooks are as in [Request].
	OneAttempt bool
	Hooks      HandlerRunner
	// Message is the message of the Killing event, as in [Request]; "": the kubelet's message for
	// Reason.
	Message string
}

// grace returns the grace period of the container, in seconds.
func (r *ContainerRequest) grace(pod *v1.Pod, name string) int64 {
	if r.GracePeriodSeconds != nil {
		return *r.GracePeriodSeconds
	}
	spec, _ := findContainer(pod, name)
	return graceperiod.ForContainer(pod, spec, r.Reason)
}

// message returns the message of the Killing event: the request's own, or else the kubelet's for a failed
// probe, or else "".
func (r *ContainerRequest) message(pod *v1.Pod, name string) string {
	var probe string
	switch r.Reason { //nolint:exhaustive // only probes have a message of the kubelet
	case graceperiod.ReasonLivenessProbe:
		probe = "liveness"
	case graceperiod.ReasonStartupProbe:
		probe = "startup"
	}
	if r.Message != "" || probe == "" {
		return r.Message
	}
	_, role := findContainer(pod, name)
	switch {
	case role.isSidecar():
		return fmt.Sprintf("Init container %s failed %s probe", name, probe)
	case pod.Spec.RestartPolicy == v1.RestartPolicyNever:
		return fmt.Sprintf("Container %s failed %s probe", name, probe)
	default:
		return fmt.Sprintf("Container %s failed %s probe, will be restarted", name, probe)
	}
}

// check returns an error if the ID of the container is missing or has a prefix.
func (c Container) check() error {
	if c.ID == "" {
		return fmt.Errorf("container %q: ID: must be set", c.Name)
	}
	if scheme, _, found := strings.Cut(c.ID, "://"); found {
		return fmt.Errorf("container %q: ID: must be without the prefix %q, is %q", c.Name, scheme+"://", c.ID)
	}
	return nil
}
