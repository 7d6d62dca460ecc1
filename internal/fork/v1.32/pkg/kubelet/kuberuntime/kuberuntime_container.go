package kuberuntime

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// errStock stands for the result of the kubelet's own code.
var errStock = errors.New("this is the kubelet's own kill")

// killContainer kills one container of a pod with kubegrace. If the feature gate of kubegrace is off, a kubelet runs its own code
// instead. This module lacks that code, and returns errStock.
func (m *kubeGenericRuntimeManager) killContainer(ctx context.Context, pod *v1.Pod, containerID kubecontainer.ContainerID, containerName, message string, reason containerKillReason, gracePeriodOverride *int64, _ *terminationOrdering) error {
	if kubegraceEnabled() {
		return m.kubegraceKillContainer(ctx, pod, containerID, containerName, message, reason, gracePeriodOverride)
	}
	return errStock
}

// killContainersWithSyncResult kills all containers of a pod with kubegrace. If the feature gate of kubegrace is off, a kubelet runs
// its own code instead. This module lacks that code, and returns a result with errStock.
func (m *kubeGenericRuntimeManager) killContainersWithSyncResult(ctx context.Context, pod *v1.Pod, runningPod kubecontainer.Pod, gracePeriodOverride *int64) (syncResults []*kubecontainer.SyncResult) {
	if kubegraceEnabled() {
		return m.kubegraceKillContainers(ctx, pod, runningPod, gracePeriodOverride)
	}
	result := kubecontainer.NewSyncResult(kubecontainer.KillContainer, "")
	result.Fail(kubecontainer.ErrKillContainer, errStock.Error())
	return []*kubecontainer.SyncResult{result}
}

// restoreSpecsFromContainerLabels restores a pod and a container from the container's labels.
func (m *kubeGenericRuntimeManager) restoreSpecsFromContainerLabels(ctx context.Context, containerID kubecontainer.ContainerID) (*v1.Pod, *v1.Container, error) {
	return m.restored(ctx, containerID)
}
