package shutdown

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// PodKiller kills one pod and returns when it is gone, or when it cannot be
// helped. The manager calls it for many pods at once. ctx ends when the pod is
// no longer waited for; the killer may go on.
type PodKiller interface {
	KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)
}

// PodKillerFunc makes a [PodKiller] of a function.
type PodKillerFunc func(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)

// KillPod calls the function.
func (f PodKillerFunc) KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error) {
	return f(ctx, pod, req)
}

// KillRequest says how a pod is to be killed. It has the kubelet's KillPodFunc
// as its model.
type KillRequest struct {
	// GracePeriodSeconds overrides the pod's own grace period; 0 means at once.
	GracePeriodSeconds int64
	// Evict marks the pod as evicted; false for a node shutdown.
	Evict bool
	// SetStatus writes the final phase, reason, message and condition into the
	// status that the killer will report. It is never nil in a node shutdown.
	SetStatus func(*v1.PodStatus)
}

// KillResult says how the kill of a pod ended.
type KillResult struct {
	Outcome string // as the killer names it; it is shown, not interpreted
	// Status is the pod's status after its end, with what became of its containers,
	// for the [Reporter]; the manager writes the policy into it once more, which
	// changes nothing where SetStatus was called. Nil: the status that the pod had in
	// [Options.Pods].
	Status *v1.PodStatus
}

// VolumeWaiter waits until the volumes of pods are unmounted; the kubelet's
// volume manager is one.
type VolumeWaiter interface {
	WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error
}

// EventRecorder records an event on an object; client-go's recorder is one.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Reporter tells the cluster: shutdown/apistatus does it through the API server.
// Its calls are bounded; one that outlives its context is left behind until Run
// ends, and the drain goes on without it.
type Reporter interface {
	// PublishNode makes the state of the node known. It is called in order, one at
	// a time, and again with a backoff after an error. ctx ends when a newer state has
	// to be published, and that of a first attempt when the drain waits for it no
	// longer; the error of that attempt is in the report. The first state of every agent is what it finds: a shutdown,
	// or that there is none, which takes back what one before it may have said.
	PublishNode(ctx context.Context, state NodeState) error
	// FlushPods returns when the final statuses of pods are accepted by the API
	// server. The pods are copies, with the status that they are to have in the end;
	// one with a deletion timestamp is to be removed once its status is accepted. An
	// *[UnflushedError] names those that were not; any other error means that none
	// was. What is not acknowledged is handed in again before the lock is released, if
	// there is time, and is in the report. An error that comes when ctx has ended comes
	// too late to tell pods apart: return a moment before.
	FlushPods(ctx context.Context, pods []*v1.Pod) error
}

// ReadinessMarker is a [Reporter] that can also take pods out of their services
// before they are stopped: a pod that a node ends by itself has no deletion
// timestamp, so that nobody else does (k/k#105780).
type ReadinessMarker interface {
	// MarkReady returns when the API server knows that pods are not ready, for a
	// reason that is told apart from that of any probe. With ready it takes back what
	// it said of pods that a cancelled shutdown has spared, and of no others.
	MarkReady(ctx context.Context, pods []*v1.Pod, ready bool) error
}

// NodeState is what a node says about its shutdown.
type NodeState struct {
	ShuttingDown bool      // false: it was cancelled, or what an agent before has said is over
	Kind         Kind      // what the host is going to do
	Since        time.Time // when the shutdown was announced
	Policy       PodPolicy // what becomes of the pods that it kills
}

// UnflushedError names the pods whose status was not acknowledged.
type UnflushedError struct {
	Pods []types.NamespacedName
	Err  error // why; nil: not known
}

// Error counts the pods and gives the reason.
func (e *UnflushedError) Error() string {
	text := fmt.Sprintf("the status of %d pods was not acknowledged", len(e.Pods))
	if e.Err == nil {
		return text
	}
	return text + ": " + e.Err.Error()
}

// Unwrap gives the reason.
func (e *UnflushedError) Unwrap() error { return e.Err }
