package shutdown

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
)

// PodKiller kills pods. KillPod kills one pod and returns when the pod has ended, or an error if it cannot
// be killed. If it returned right after the stop signal, the lock would be released while the pod still runs.
// KillPod must not change the pod. The manager calls it for many pods concurrently. ctx ends when both Run
// and TerminateAll have ended, which may be after the lock was released.
//
// KillPod may be called again for the same pod:
//
//   - After an error the manager calls it every second with the remaining grace period, until the lock
//     is released or, after a cancellation, until Run ends. An error that wraps [ErrNoRetry] stops this.
//   - If the host shortens the time, or a later shutdown has less, the manager calls it while an earlier
//     call still runs. The later call waits for the same end of the pod, and may only shorten the grace
//     period.
//
// After a restart of the agent, pod may have only what the state log stores: its name and UID, the annotations of static
// pods, the grace period, the names of its containers with their preStop hooks, and its status.
//
// An error with a method Await(context.Context) (KillResult, error), such as podkiller's *OverdueError,
// says that the kill is still under way. The manager then calls Await instead of KillPod.
type PodKiller interface {
	KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)
}

// ErrNoRetry is wrapped by an error of KillPod to say that a retry would fail too.
var ErrNoRetry = errors.New("the kill is not retried")

// PodKillerFunc is a function that implements [PodKiller].
type PodKillerFunc func(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)

// KillPod calls the function.
func (f PodKillerFunc) KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error) {
	return f(ctx, pod, req)
}

// KillRequest says how to kill a pod. Its fields are the parameters of the kubelet's KillPodFunc.
type KillRequest struct {
	// GracePeriodSeconds overrides the pod's grace period, in seconds, 0 or more. 0 means the shortest
	// grace period that the killer supports: 1 s for package podkiller, as for the kubelet. Nil means the
	// pod's own grace period; a node shutdown never passes nil.
	GracePeriodSeconds *int64
	// Evict marks the pod as evicted. It is false in a node shutdown.
	Evict bool
	// SetStatus sets the final phase, reason, message and condition. The killer calls it on a status
	// that it returns or sends. It is never nil in a node shutdown.
	SetStatus func(*v1.PodStatus)
}

// KillResult says how a pod ended.
type KillResult struct {
	// Outcome is a short text of the killer's choice for the report, the metrics and the log. Outcomes
	// other than "", "Graceful" and "NotFound" are logged at verbosity 0, these at 1. "NotFound" says that
	// nothing was running; for a pod whose phase is not final it is logged at 0.
	Outcome string
	// Status is the pod's status after its end, with the states of its containers, for the [Reporter]. Do not
	// change it after KillPod has returned. In a copy of it the manager sets the final phase, reason, message
	// and condition, if [Options.Policy] says so. [KillRequest.SetStatus] sets the same. Nil: the pod's
	// status from [Options.ListPods].
	Status *v1.PodStatus
}
