package shutdown

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
)

// PodKiller kills one pod. KillPod returns when the pod has ended, or with an error when it
// cannot be killed. The manager calls it for many pods at once. ctx ends when both Run and TerminateAll
// end; until then the manager wants to know of the pod's end, also after the lock is released.
//
// KillPod may be called again for the same pod. After an error the manager calls it again a
// second later, with the rest of the grace period, until it releases the lock; an error that
// wraps [ErrNoRetry] ends this. A later shutdown with less time may call it while an earlier call
// still runs: such a call waits for the same end and may only shorten the grace period. An error
// with a method Await(context.Context) (KillResult, error), as podkiller's *OverdueError, says
// that the kill goes on; the manager calls Await instead of KillPod.
type PodKiller interface {
	KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)
}

// ErrNoRetry is wrapped by an error of KillPod to say that another attempt would fail as well.
var ErrNoRetry = errors.New("the kill is not tried again")

// PodKillerFunc is a function that is a [PodKiller].
type PodKillerFunc func(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)

// KillPod calls the function.
func (f PodKillerFunc) KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error) {
	return f(ctx, pod, req)
}

// KillRequest says how to kill a pod. It follows the kubelet's KillPodFunc.
type KillRequest struct {
	// GracePeriodSeconds replaces the grace period of the pod, in seconds; nil: the pod's own. 0
	// leaves it no time, or as little as the killer gives: package podkiller takes a value below
	// 1 for 1, as the kubelet does. It is never nil in a node shutdown.
	GracePeriodSeconds *int64
	// Evict marks the pod as evicted. It is false in a node shutdown.
	Evict bool
	// SetStatus writes the final phase, reason, message and condition into a status. The killer
	// calls it on a status that it returns or sends. It is never nil in a node shutdown.
	SetStatus func(*v1.PodStatus)
}

// KillResult says how a pod ended.
type KillResult struct {
	// Outcome is in the killer's words, and is shown in the report, the metrics and the log. The log has any but
	// "", "Graceful" and "NotFound" at verbosity 0.
	Outcome string
	// Status is the status of the pod after its end, with the states of its containers, for the
	// [Reporter]. The manager applies the pod policy to it once more, which changes nothing if
	// SetStatus was called; it must not change any more. Nil: the status of the pod in [Options.ListPods].
	Status *v1.PodStatus
}
