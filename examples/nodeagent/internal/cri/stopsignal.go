package cri

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// stopSignal gives CRI's value for a container's stop signal (KEP-4960):
// RUNTIME_DEFAULT where none is set, which leaves it to the image; false for a name
// that CRI does not have.
func stopSignal(container *v1.Container) (runtimeapi.Signal, bool) {
	if container.Lifecycle == nil || container.Lifecycle.StopSignal == nil {
		return runtimeapi.Signal_RUNTIME_DEFAULT, true
	}
	name := string(*container.Lifecycle.StopSignal)
	value, known := runtimeapi.Signal_value[strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(name)]
	return runtimeapi.Signal(value), known && strings.HasPrefix(name, "SIG")
}

// warnOfStopSignal says so in the log when the runtime does not show the stop signal
// that was asked for. Runtimes older than KEP-4960, as containerd 1.6, take the
// request and send SIGTERM. It is no error: the container runs and will be stopped.
func (r *Runtime) warnOfStopSignal(ctx context.Context, pod *v1.Pod, step step, id string) {
	asked := step.config.GetStopSignal()
	if asked == runtimeapi.Signal_RUNTIME_DEFAULT {
		return
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KObj(pod), "containerName", step.container.Name, "containerID", id)
	response, err := r.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		logger.Error(err, "Failed to read back the stop signal of a container")
		return
	}
	if shown := response.GetStatus().GetStopSignal(); shown != asked {
		logger.Info("Container runtime does not show the stop signal that was asked for and will probably send another",
			"asked", asked.String(), "shown", shown.String())
	}
}
