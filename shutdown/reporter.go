package shutdown

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	v1 "k8s.io/api/core/v1"
)

// Reporter tells the cluster about the shutdown. Package apistatus has one that uses client-go. A
// Reporter may also be a [StatusFlusher] and a [ReadinessMarker]; the plan reserves no time for an
// interface that it lacks. The context of each call has a deadline. The manager does not wait for a
// call that outlives its context, except at the end of Run.
type Reporter interface {
	// PublishNode makes the node state known. There is one call at a time, in the order of the
	// states. After an error it is called again, with a pause that doubles from 100 ms to 30 s;
	// the last error is in the report if the drain waited in vain. ctx ends when there is a newer
	// state, or when the call takes too long. The first state that an agent publishes is the one
	// it finds. So an agent that finds no shutdown takes back what a previous one has published.
	PublishNode(ctx context.Context, state NodeState) error
}

// ReporterFunc is a function that is a [Reporter], such as the kubelet's SyncNodeStatusFunc,
// which reads [Manager.ShutdownStatus] itself. It sends neither final statuses nor readiness
// marks.
type ReporterFunc func(ctx context.Context, state NodeState) error

// PublishNode calls the function.
func (f ReporterFunc) PublishNode(ctx context.Context, state NodeState) error { return f(ctx, state) }

// StatusFlusher is a [Reporter] that also sends the final statuses of pods to the API server.
type StatusFlusher interface {
	// FlushPod makes one attempt to send the final status of a pod. It returns nil when the API
	// server has accepted the status or has no such pod. It is called when the pod ends, for ten
	// pods at once. After an error it is called again until the agent ends, with a pause that doubles
	// from 100 ms to 1 s, to 30 s outside of a drain, or the pause that the error suggests
	// (apierrors.SuggestsClientDelay), 5 s at most. The pod is a copy with its final status. A
	// pod with a deletion timestamp is to be deleted once the status is accepted.
	FlushPod(ctx context.Context, pod *v1.Pod) error
}

// ReadinessMarker is a [Reporter] that also takes pods out of their services before they are
// killed. Nobody else does: a pod that is killed by its node has no deletion timestamp
// (kubernetes/kubernetes#105780).
type ReadinessMarker interface {
	// MarkNotReady makes one attempt to set the Ready condition of a pod to false, with a reason
	// that no probe uses. Ten calls of MarkNotReady and FlushPod together run at once, FlushPod
	// first. A mark that is not acknowledged in time is dropped.
	MarkNotReady(ctx context.Context, pod *v1.Pod) error
	// RestoreReadiness makes one attempt to restore the readiness that the pod had before
	// MarkNotReady. It is called for pods that a cancelled shutdown has not killed. It returns nil when
	// the API server has accepted that, or when somebody else has changed the condition meanwhile.
	RestoreReadiness(ctx context.Context, pod *v1.Pod) error
}

// NodeState is the state of the node that a [Reporter] publishes. The zero value says that the
// node does not shut down.
type NodeState struct {
	ShuttingDown bool        // false: the shutdown was cancelled, or none is under way
	Kind         source.Kind // what the host is going to do
	Since        time.Time   // when the shutdown was announced
	Policy       PodPolicy   // what becomes of the killed pods
}
