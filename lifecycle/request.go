package lifecycle

import "github.com/kubegrace/kubegrace/graceperiod"

// Container is a running container.
type Container struct {
	// Name is the name of the container in the pod's spec. A container that the spec
	// does not have is stopped without a hook and without regard to the order, and its
	// result has an error.
	Name string
	// ID is the agent's own ID of the container, any text but "". The terminator passes
	// it to the [Runtime], the [CommandRunner] and the [ExitWatcher], which get nothing
	// else of the container, so that it should be unique on the node; the terminator
	// itself needs one that is unique in the pod. A container without an ID cannot be
	// stopped: its outcome is [RuntimeStuck], and its error wraps [ErrUnknownContainers].
	ID string
	// PreStopDone says that the container's preStop hook has run already, before the
	// agent restarted; it does not run again.
	PreStopDone bool
}

// Request says how to terminate a pod. The zero value terminates it with its own grace
// period, and stops all containers that run by its status.
type Request struct {
	// GracePeriodSeconds replaces the grace period of the pod's spec, in seconds; nil:
	// that of the spec. A value below 1 means 1. It cannot lengthen the grace period of
	// a pod that was deleted ([graceperiod.ForPod]).
	GracePeriodSeconds *int64
	// Containers are the containers that run. Those that run by the pod's status
	// ([ContainersOf]) are stopped as well, unless Complete is set, and so are those that
	// [Pod.Start] has started. If it is nil or empty, a container without a state in the status is
	// unknown ([ErrUnknownContainers]).
	Containers []Container
	// Complete says that nothing of the pod runs but Containers and what [Pod.Start] has
	// started, so that the status is not read, and no container of which the list does not
	// know is unknown any more.
	Complete bool
	// OneAttempt ends the call with the error of the first StopContainer that fails, as the
	// kubelet does, for callers that try again by themselves. The container is [RuntimeStuck].
	// The next call goes on where this one was; the grace period starts anew if no stop was
	// delivered. It is that of the call that starts to stop a container.
	OneAttempt bool
	// Hooks runs the hooks of the containers that this call starts to stop, for programs that
	// change their runner; nil: that of the options.
	Hooks HandlerRunner
	// Message is the message of the Killing events; "": "Stopping container NAME". The
	// ID of the container in it is replaced by the name, as in the kubelet.
	Message string
}

// ContainerRequest says how to stop a single container. The zero value stops it with the
// grace period of its pod.
type ContainerRequest struct {
	// Reason decides the grace period: a probe that failed may have its own
	// ([graceperiod.ForContainer]). "" means [graceperiod.ReasonUnknown].
	Reason graceperiod.KillReason
	// GracePeriodSeconds replaces that grace period, in seconds; nil: that of the
	// reason. 0 or less leaves no time for the hook.
	GracePeriodSeconds *int64
	// OneAttempt and Hooks are as in [Request].
	OneAttempt bool
	Hooks      HandlerRunner
	// Message is the message of the Killing event, as in [Request]; "": the kubelet's
	// for the reason.
	Message string
}
