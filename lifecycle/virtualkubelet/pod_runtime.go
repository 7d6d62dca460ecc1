package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// PodRuntime is what the author of a provider implements whose pods run as a whole at another
// place: as a job, a virtual machine, or a pod of another cluster. The methods may be called
// concurrently, are given a copy of the pod, and return at the latest when ctx ends, which is after
// 30 s, in Create after two minutes. One that fails or panics is called again after
// [Options.PollInterval], Create with the kubelet's back-off: 10 s, twice as much each time up to
// 5 min. An error of Stop or Delete that wraps [lifecycle.ErrContainerNotFound] says that the pod is not there.
//
// A preStop hook runs only if the PodRuntime is also a [lifecycle.CommandRunner]; the container
// ID that RunInContainer is given is "UID/CONTAINER". The hooks of all containers then run side by
// side before Stop. Otherwise hooks are left to the PodRuntime, which is given the whole pod, and so
// are postStart hooks, the order of the containers and their restarts.
type PodRuntime interface {
	// Create creates a pod and starts it. As its answer may be lost, Statuses is asked after an error
	// whether the pod is there, and Create is called again if it is not. Create must not create a pod of
	// the same UID twice. An errdefs.ErrInvalidInput says that this pod can never run, which then is
	// Failed. While any other error lasts, the containers are Waiting
	// with the reason CreateContainerError and the error. ctx ends, too, when the pod is deleted
	// meanwhile. Create is called for [Options.MaxStarts] pods at once, and for one pod not twice
	// at a time. Annotations that it puts on pod, such as the ID of a job, are on the pod in all
	// later calls, and in all statuses that are told. The status of pod has no container statuses yet.
	Create(ctx context.Context, pod *v1.Pod) error
	// Stop has a pod stopped, and killed after graceSeconds, 0 or more. It need not wait for the end;
	// Statuses tells that. It is called again with less time if the grace period is shortened, and
	// with 0 if the pod still runs after it.
	Stop(ctx context.Context, pod *v1.Pod, graceSeconds int64) error
	// Statuses returns the pods of this node, those of previous agents and those that have ended
	// included: all from the return of Create until they are deleted, or an error. A pod has its
	// namespace, name and UID, without which the list is refused, and its status: the phase Succeeded or
	// Failed says that nothing of the pod runs any more, and nothing else does. The states of
	// containers, if any, reasons, IPs and conditions go into the pod's status. A spec, if any,
	// gives the grace period of a pod that the API server has no more. A pod that was killed is
	// Failed, and its containers have the exit code 137, unless the PodRuntime knows better.
	//
	// The call is made for all pods at once: in each interval and, while a pod is being terminated or
	// its Create has failed, at most once a second. A pod that two lists in a row lack after its Create has
	// returned is lost: it is Failed, which is logged. If a later list has it running, it is stopped.
	// Where the other side forgets a pod as soon as it is told to stop it, list that pod as Failed until
	// Delete is called.
	//
	// An author who can only ask pod by pod keeps a list of what Create was called
	// for until Delete has succeeded, over restarts of the agent, and asks for each: several at
	// once, as all must be done in 30 s. If one pod cannot be told of, the call fails.
	Statuses(ctx context.Context) ([]*v1.Pod, error)
	// Delete forgets a pod that has ended, and what is left of it. It is
	// called once the pod is deleted at the API server, too; until then one that has completed, or was
	// drained, stays in the list. It is called at least once for every pod, even if it is not listed,
	// and again until it has succeeded
	// and a list of Statuses lacks the pod, or the error says that it is not there.
	Delete(ctx context.Context, pod *v1.Pod) error
}
