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

// RestartContainer makes the container anew, in the sandbox of the old one, which must be
// ready, and with the next attempt in its metadata, as the kubelet does.
func (r *Runtime) RestartContainer(ctx context.Context, pod *v1.Pod, exited lifecycle.Container) (string, error) {
	list, err := r.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{Id: exited.ID}})
	if err != nil {
		return "", containerError("look for", exited.ID, err)
	}
	if len(list.GetContainers()) == 0 {
		return "", fmt.Errorf("failed to look for container %q: %w", exited.ID, lifecycle.ErrContainerNotFound)
	}
	old := list.GetContainers()[0]
	for _, step := range r.steps(pod) {
		if step.container.Name != exited.Name {
			continue
		}
		step.config.Metadata.Attempt = old.GetMetadata().GetAttempt() + 1
		if r.options.LogDirectory != "" {
			step.config.LogPath = fmt.Sprintf("%s/%d.log", exited.Name, step.config.Metadata.Attempt)
		}
		id, err := r.startOne(ctx, old.GetPodSandboxId(), r.sandboxConfig(pod), step)
		if err != nil {
			return "", fmt.Errorf("pod %s, container %q: %w", podName(pod), exited.Name, withCause(ctx, err))
		}
		// Where it cannot be removed it goes with its sandbox.
		_, err = r.runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: exited.ID})
		if err != nil && !gone(err) {
			klog.FromContext(ctx).V(1).Info("Failed to remove a container that has exited", "pod", klog.KObj(pod), "container", exited.Name, "err", err)
		}
		return id, nil
	}
	return "", errors.New("the pod has no container " + exited.Name)
}
