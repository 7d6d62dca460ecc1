package shutdown

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodKiller kills one pod and returns when it is gone, or when it cannot be
// helped. The manager calls it for many pods at once. ctx ends when the pod is
// no longer waited for; the killer may go on.
type PodKiller interface {
	KillPod(ctx context.Context, pod *v1.Pod, req KillRequest) (KillResult, error)
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
