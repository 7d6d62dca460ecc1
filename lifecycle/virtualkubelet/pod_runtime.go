package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// PodRuntime runs whole pods in another system: as jobs, virtual machines, or pods of another cluster.
// The author of the provider implements it.
//
// The methods may be called concurrently, get a copy of the pod, and must return when ctx ends: after
// 30 s, in Create after 2 min. A method that fails or panics is called again after
// [Options.PollInterval]; Create with the kubelet's back-off of 10 s, doubled each time up to 5 min. An
// error of Stop or Delete that wraps [lifecycle.ErrContainerNotFound] means that the pod does not exist.
//
// If the PodRuntime is also a [lifecycle.CommandRunner], the preStop hooks of all containers run
// concurrently before Stop; RunInContainer gets the container ID "UID/CONTAINER". Otherwise the
// PodRuntime is responsible for preStop hooks. It is always responsible for postStart hooks and for the
// order and restarts of containers.
type PodRuntime interface {
	// Create creates and starts a pod. It must not create two pods with one UID: after an error, Create
	// is called again if Statuses lacks the pod. An errdefs.ErrInvalidInput means that the pod can never
	// run; the pod is then Failed. After any other error the containers are Waiting with the reason
	// CreateContainerError and the error as message.
	//
	// ctx also ends when the pod is deleted. At most ten calls are in progress at a time, and at most one
	// for each pod. Annotations that Create sets on pod, such as a job ID, are kept for all later calls
	// and statuses. The status of pod has no container statuses yet.
	Create(ctx context.Context, pod *v1.Pod) error
	// Stop stops a pod, and kills it after graceSeconds, 0 or more. It need not wait for the end, which
	// Statuses reports. It is called again with fewer seconds if the grace period is shortened. If the
	// pod is still running after its grace period, Stop is called with 0, and again at least every 3 min
	// until the pod has ended. A [lifecycle.TerminatorOptions].StopTimeoutSlack above the default adds
	// to these 3 min.
	Stop(ctx context.Context, pod *v1.Pod, graceSeconds int64) error
	// Statuses returns all pods of this node from the return of Create until Delete, including ended pods
	// and those of previous agents, or an error. Each pod needs its namespace, name, UID and status; a
	// pod without a UID fails the whole list. Only the phases Succeeded and Failed mean that nothing of
	// the pod is running. The status may have container states, reasons, IPs and conditions. Return the
	// spec too if the system has it: it has the grace period for stopping a pod that the API server no
	// longer has. Return the phase Failed for a pod that was killed. A container of a Failed pod then has
	// the exit code 137, unless the status has its terminated state.
	//
	// Statuses is called once in each interval and, while a pod is terminating or its Create has failed,
	// at most once a second. A pod that two successive lists lack after Create has returned is lost: it
	// is logged and Failed. If a later list has it running, it is stopped. If the system forgets
	// a pod once it is stopped, list it as Failed until Delete is called.
	//
	// If the system can only be asked for one pod at a time, store for which pods Create was called and
	// Delete has not succeeded, across restarts of the agent, and query them concurrently: all within the
	// 30 s of ctx. If one query fails, return an error.
	Statuses(ctx context.Context) ([]*v1.Pod, error)
	// Delete removes a pod that has ended. It is called once the API server has deleted the pod; a
	// completed or drained pod stays listed until then. It is called at least once for each pod, even if
	// the pod is not listed, and again until it succeeds and Statuses lacks the pod, or until the error
	// says that the pod does not exist.
	Delete(ctx context.Context, pod *v1.Pod) error
}
