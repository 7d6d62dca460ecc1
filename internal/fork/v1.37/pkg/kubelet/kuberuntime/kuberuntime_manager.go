// Package kuberuntime stands in for the kubelet's package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package kuberuntime

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	internalapi "k8s.io/cri-api/pkg/apis"
	crierror "k8s.io/cri-api/pkg/errors"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// kubeGenericRuntimeManager has the kubelet's fields that a kill needs.
type kubeGenericRuntimeManager struct {
	terminator     kubegraceTerminator
	runtimeName    string
	recorder       record.EventRecorderLogger
	runner         kubecontainer.HandlerRunner
	runtimeService internalapi.RuntimeService
	// restored returns the pod and the container that a test gives in place of a container's labels.
	restored func(context.Context, kubecontainer.ContainerID) (*v1.Pod, *v1.Container, error)
}

// containerKillReason is why a container is killed.
type containerKillReason string

const (
	reasonStartupProbe         containerKillReason = "StartupProbe"
	reasonLivenessProbe        containerKillReason = "LivenessProbe"
	reasonFailedPostStartHook  containerKillReason = "FailedPostStartHook"
	reasonRestartAllContainers containerKillReason = "RestartAllContainers"
	reasonUnknown              containerKillReason = "Unknown"
)

// terminationOrdering stands in for the kubelet's stop order.
type terminationOrdering struct{}

// killPodWithSyncResult kills the containers of a pod and then its sandboxes, even if a container was not killed. If
// nothing fails, the terminator forgets the pod. A missing sandbox is no failure.
func (m *kubeGenericRuntimeManager) killPodWithSyncResult(ctx context.Context, pod *v1.Pod, runningPod kubecontainer.Pod, gracePeriodOverride *int64) (result kubecontainer.PodSyncResult) {
	defer m.kubegraceForget(runningPod.ID, &result)
	result.AddSyncResult(m.killContainersWithSyncResult(ctx, pod, runningPod, gracePeriodOverride)...)
	sandboxes := kubecontainer.NewSyncResult(kubecontainer.KillPodSandbox, runningPod.ID)
	result.AddSyncResult(sandboxes)
	for _, s := range runningPod.Sandboxes {
		if err := m.runtimeService.StopPodSandbox(ctx, s.ID.ID); err != nil && !crierror.IsNotFound(err) {
			sandboxes.Fail(kubecontainer.ErrKillPodSandbox, err.Error())
		}
	}
	return result
}
