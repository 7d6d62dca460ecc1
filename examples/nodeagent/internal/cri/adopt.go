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

// Adopt looks for a pod that an earlier life of the agent started. Sandboxes that are
// not ready are removed: nothing runs in them, and they hold the name of the new one.
func (r *Runtime) Adopt(ctx context.Context, pod *v1.Pod) (containers []lifecycle.Container, found bool, err error) {
	left, err := r.sandboxes(ctx, pod)
	if err != nil {
		return nil, false, err
	}
	for _, sandbox := range left {
		if sandbox.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
			containers, err = r.running(ctx, pod, sandbox.GetId())
			before, now := sandbox.GetAnnotations()[podruntime.HashAnnotation], pod.Annotations[podruntime.HashAnnotation]
			if err == nil && before != "" && before != now {
				err = podruntime.ErrChanged
			}
			return containers, true, err
		}
	}
	for _, sandbox := range left {
		if err := r.removeSandbox(ctx, pod, sandbox.GetId()); err != nil {
			return nil, false, err
		}
	}
	return nil, false, nil
}

// running gives the containers that run in a sandbox, the oldest first. Plain init
// containers are not among them: they have exited, or the pod was never started
// to its end.
func (r *Runtime) running(ctx context.Context, pod *v1.Pod, sandbox string) ([]lifecycle.Container, error) {
	request := &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		PodSandboxId: sandbox,
		State:        &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}}
	response, err := r.runtime.ListContainers(ctx, request)
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
