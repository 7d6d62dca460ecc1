package lifecycle

import "github.com/kubegrace/kubegrace/graceperiod"

// Container names a container that runs.
type Container struct {
	// Name is the container's in the pod's spec. One that the spec does not have is
	// stopped without a hook and out of order, and its result has an error.
	Name string
	// ID is what the [Runtime], the [HandlerRunner] and the [ExitWatcher] know the
	// container by. It is opaque here, and must be the pod's only one. A container
	// without an ID is not asked for: its result is [RuntimeStuck], with an error that
	// wraps [ErrUnknownContainers].
	ID string
	// PreStopDone says that the container's preStop hook has run already, in an
	// earlier life of the agent; it is not run again.
	PreStopDone bool
}

// Request says how a pod is to be terminated. The zero value means: with the
// pod's own grace period, all containers that run in its status.
type Request struct {
	// GracePeriodSeconds overrides the grace period of the pod's spec, in seconds;
	// nil means the pod's own. A value below 1 means 1. It does not lengthen the
	// grace of a pod that was deleted ([graceperiod.ForPod]).
	GracePeriodSeconds *int64
	// Containers are those that run; nil means [ContainersOf] the pod, and an empty
	// list that none does but for those that [Terminator.Start] has started.
	Containers []Container
	// Message is that of the Killing event; "" means "Stopping container NAME". The
	// ID of the container in it is replaced by its name, as in the kubelet.
	Message string
}

// ContainerRequest says how a single container is to be ended. The zero value means:
// with the grace period of its pod.
type ContainerRequest struct {
	// Reason decides the grace: that of a failed probe may have its own
	// ([graceperiod.ForContainer]). "" is [graceperiod.ReasonUnknown].
	Reason graceperiod.KillReason
	// GracePeriodSeconds replaces that grace, in seconds; 0 or less leaves no time for
	// the hook. nil means that of the reason.
	GracePeriodSeconds *int64
	// Message is that of the Killing event, as in [Request]; "" means the kubelet's for
	// the reason.
	Message string
}
