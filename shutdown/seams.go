package shutdown

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodKiller kills one pod and returns when it is gone, or when it cannot be
// helped. The manager calls it for many pods at once. ctx ends when the pod is
// no longer waited for; the killer may go on.
//
// It may be called again for a pod: after an error, a second later and with the grace that
// is left, until the host is let go; and by a shutdown that leaves less time. A call for a
// pod that still ends joins it and only shortens its grace. An error that wraps
// [ErrNoRetry] is final. One that has a method Await(context.Context) (KillResult, error),
// as podkiller's *OverdueError, says that the kill goes on; it is waited for instead.
type PodKiller interface {
	KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)
}

// ErrNoRetry is wrapped by an error of KillPod that another attempt cannot mend.
var ErrNoRetry = errors.New("the kill is not tried again")

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

// Reporter tells the cluster: shutdown/apistatus does it through the API server. One that
// is a [StatusFlusher], a [ReadinessMarker] or a [ReadinessRestorer] too tells more; no
// time is kept for what it does not tell. Its calls are bounded; one that outlives its
// context is left behind until Run ends.
type Reporter interface {
	// PublishNode makes the state of the node known. It is called in order, one at
	// a time, and again after an error, with a pause that doubles from 100 ms. ctx ends when
	// a newer state has to be published, and when the call takes too long; the last error
	// is in the report if the drain has waited in vain. The first state of every agent is
	// what it finds: a shutdown, or that there is none, which takes back what one before it
	// may have said.
	PublishNode(ctx context.Context, state NodeState) error
}

// ReporterFunc makes a [Reporter] of a function: of the kubelet's SyncNodeStatusFunc, for
// example, which reads [Manager.ShutdownStatus] itself. Such a reporter has no final
// statuses and no readiness to tell, and no time is kept for them.
type ReporterFunc func(ctx context.Context, state NodeState) error

// PublishNode calls the function.
func (f ReporterFunc) PublishNode(ctx context.Context, state NodeState) error { return f(ctx, state) }

// StatusFlusher is a [Reporter] that also brings the final statuses of pods to the API
// server.
type StatusFlusher interface {
	// FlushPod returns when the final status of a pod is accepted by the API server, or
	// when the pod is gone there. It is called as the pod ends, for ten pods at once, and is
	// one attempt: after an error the pod comes again, with a pause that doubles from 100 ms
	// to 1 s or that the error suggests (apierrors.SuggestsClientDelay), until the host is
	// let go. The pod is a copy, with the status that it is to have in the end; one with a
	// deletion timestamp is to be removed once its status is accepted.
	FlushPod(ctx context.Context, pod *v1.Pod) error
}

// ReadinessMarker is a [Reporter] that can also take pods out of their services
// before they are stopped: a pod that a node ends by itself has no deletion
// timestamp, so that nobody else does (k/k#105780).
type ReadinessMarker interface {
	// MarkNotReady returns when the API server knows that the pod is not ready, for a
	// reason that is told apart from that of any probe. It shares the ten calls with
	// FlushPod, which comes first. A mark that is not sent in time is dropped.
	MarkNotReady(ctx context.Context, pod *v1.Pod) error
}

// ReadinessRestorer is a [ReadinessMarker] that can also take back what it has said of a
// pod that a cancelled shutdown has spared.
type ReadinessRestorer interface {
	// RestoreReadiness returns when the API server has the pod as it was before
	// MarkNotReady, or when somebody else has changed it meanwhile.
	RestoreReadiness(ctx context.Context, pod *v1.Pod) error
}

// NodeState is what a node says about its shutdown.
type NodeState struct {
	ShuttingDown bool      // false: it was cancelled, or what an agent before has said is over
	Kind         Kind      // what the host is going to do
	Since        time.Time // when the shutdown was announced
	Policy       PodPolicy // what becomes of the pods that it kills
}
