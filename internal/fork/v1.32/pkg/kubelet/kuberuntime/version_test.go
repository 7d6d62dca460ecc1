package kuberuntime

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// gracePeriodOf calls setTerminationGracePeriod.
func gracePeriodOf(pod *v1.Pod, container *v1.Container, reason containerKillReason) int64 {
	return setTerminationGracePeriod(pod, container, container.Name, kubecontainer.ContainerID{}, reason)
}

// watchedRecorder is a recorder that also passes the object of each event to observe.
type watchedRecorder struct {
	record.EventRecorder
	observe func(runtime.Object)
}

// recorderOf returns a recorder that records with events and passes the object of each event to observe.
func recorderOf(events record.EventRecorder, observe func(runtime.Object)) watchedRecorder {
	return watchedRecorder{events, observe}
}

// Event passes the object to observe, and records the event.
func (r watchedRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.observe(object)
	r.EventRecorder.Event(object, eventtype, reason, message)
}
