package cri

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// RestartContainer creates and starts a new container in the sandbox of one that has
// exited, with the next attempt number, and then removes the exited one. The sandbox
// must be ready. The error wraps lifecycle.ErrContainerNotFound if the runtime does not
// know the exited container.
func (r *Runtime) RestartContainer(ctx context.Context, pod *v1.Pod, exited lifecycle.Container) (string, error) {
	list, err := r.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{Id: exited.ID}})
	if err != nil {
		return "", fmt.Errorf("failed to look for container %q: %w", exited.ID, err)
	}
	if len(list.GetContainers()) == 0 {
		return "", fmt.Errorf("failed to look for container %q: %w", exited.ID, lifecycle.ErrContainerNotFound)
	}
	old := list.GetContainers()[0]
	container := findContainer(pod, exited.Name)
	if container == nil {
		return "", errors.New("the pod has no container " + exited.Name)
	}
	config := r.configs.container(pod, container, old.GetMetadata().GetAttempt()+1)
	id, err := r.StartContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: old.GetPodSandboxId(), Config: config, SandboxConfig: r.configs.sandbox(pod),
	})
	if err != nil {
		return "", fmt.Errorf("pod %s, container %q: %w", podName(pod), exited.Name, withCause(ctx, err))
	}
	// If the removal fails, the exited container goes with its sandbox.
	_, err = r.client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: exited.ID})
	if err != nil && !isNotFound(err) {
		klog.FromContext(ctx).V(1).Info("Failed to remove a container that has exited", "pod", klog.KObj(pod), "container", exited.Name, "err", err)
	}
	return id, nil
}

// findContainer returns the container of a pod that has the name, init containers
// included, or nil.
func findContainer(pod *v1.Pod, name string) *v1.Container {
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Name == name {
				return &containers[i]
			}
		}
	}
	return nil
}
