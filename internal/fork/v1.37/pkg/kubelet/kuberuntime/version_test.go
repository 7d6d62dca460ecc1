package kuberuntime

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func gracePeriodOf(pod *v1.Pod, container *v1.Container, reason containerKillReason) int64 {
	return setTerminationGracePeriod(context.Background(), pod, container, container.Name, kubecontainer.ContainerID{}, reason)
}

// watchedRecorder tells the object of each event.
type watchedRecorder struct {
	record.EventRecorderLogger
	tell func(runtime.Object)
}

func recorderOf(events record.EventRecorderLogger, tell func(runtime.Object)) watchedRecorder {
	return watchedRecorder{events, tell}
}

func (r watchedRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.tell(object)
	r.EventRecorderLogger.Event(object, eventtype, reason, message)
}
