package cri

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubelet/pkg/types"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
)

var _ podruntime.Adopter = (*Runtime)(nil)

// Adopt finds a pod that an earlier process of the agent started (see
// [podruntime.Adopter]). If none of the pod's sandboxes is ready, Adopt removes them:
// nothing runs in them, and their name keeps a new one from being created.
func (r *Runtime) Adopt(ctx context.Context, pod *v1.Pod) (containers []lifecycle.Container, found bool, err error) {
	sandboxes, err := r.listSandboxes(ctx, pod)
	if err != nil {
		return nil, false, err
	}
	for _, sandbox := range sandboxes {
		if sandbox.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
			containers, err = r.runningContainers(ctx, pod, sandbox.GetId())
			startedHash, hash := sandbox.GetAnnotations()[podruntime.HashAnnotation], pod.Annotations[podruntime.HashAnnotation]
			if err == nil && startedHash != "" && startedHash != hash {
				err = podruntime.ErrChanged
			}
			return containers, true, err
		}
	}
	for _, sandbox := range sandboxes {
		if err := r.removeSandbox(ctx, pod, sandbox.GetId()); err != nil {
			return nil, false, err
		}
	}
	return nil, false, nil
}

// runningContainers returns the containers that run in a sandbox, oldest first. A plain
// init container is among them only if the agent ended while it ran.
func (r *Runtime) runningContainers(ctx context.Context, pod *v1.Pod, sandbox string) ([]lifecycle.Container, error) {
	request := &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		PodSandboxId: sandbox,
		State:        &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}}
	response, err := r.client.ListContainers(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("failed to list the containers of pod %s: %w", podName(pod), err)
	}
	items := response.GetContainers()
	slices.SortStableFunc(items, func(a, b *runtimeapi.Container) int { return cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt()) })
	var containers []lifecycle.Container
	for _, item := range items {
		name := item.GetLabels()[types.KubernetesContainerNameLabel]
		containers = append(containers, lifecycle.Container{Name: name, ID: item.GetId()})
	}
	return containers, nil
}
