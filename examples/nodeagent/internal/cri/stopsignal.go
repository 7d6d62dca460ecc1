package cri

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// stopSignal returns CRI's value for a container's lifecycle.stopSignal (KEP-4960).
// Without one it is RUNTIME_DEFAULT, which means the signal of the image. It returns
// false for a name that CRI does not have.
func stopSignal(container *v1.Container) (runtimeapi.Signal, bool) {
	if container.Lifecycle == nil || container.Lifecycle.StopSignal == nil {
		return runtimeapi.Signal_RUNTIME_DEFAULT, true
	}
	name := string(*container.Lifecycle.StopSignal)
	value, known := runtimeapi.Signal_value[strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(name)]
	return runtimeapi.Signal(value), known && strings.HasPrefix(name, "SIG")
}

// warnOfIgnoredStopSignal logs it if the runtime does not show the stop signal that a
// container was created with. Runtimes older than KEP-4960, as containerd 1.6, accept the
// request and send SIGTERM. It is no error: the container runs and can be stopped.
func (r *Runtime) warnOfIgnoredStopSignal(ctx context.Context, pod *v1.Pod, step startStep, id string) {
	want := step.config.GetStopSignal()
	if want == runtimeapi.Signal_RUNTIME_DEFAULT {
		return
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KObj(pod), "containerName", step.container.Name, "containerID", id)
	response, err := r.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		logger.Error(err, "Failed to read back the stop signal of a container")
		return
	}
	if shown := response.GetStatus().GetStopSignal(); shown != want {
		logger.Info("Container runtime does not show the stop signal that was asked for and will probably send another",
			"asked", want.String(), "shown", shown.String())
	}
}
