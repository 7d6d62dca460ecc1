package cri

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runSandbox creates and starts a sandbox and returns its ID.
func (r *Runtime) runSandbox(ctx context.Context, pod *v1.Pod, config *runtimeapi.PodSandboxConfig) (string, error) {
	response, err := r.client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		return "", fmt.Errorf("failed to run the sandbox of pod %s: %w", podName(pod), err)
	}
	return response.GetPodSandboxId(), nil
}

// listSandboxes returns the sandboxes of a pod, in every state.
func (r *Runtime) listSandboxes(ctx context.Context, pod *v1.Pod) ([]*runtimeapi.PodSandbox, error) {
	request := &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: uidSelector(pod)}}
	response, err := r.client.ListPodSandbox(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("failed to list the sandboxes of pod %s: %w", podName(pod), err)
	}
	return response.GetItems(), nil
}

// removeSandbox stops a sandbox, which kills the containers that still run in it, and
// removes it with its containers. A sandbox that the runtime does not know is no error.
func (r *Runtime) removeSandbox(ctx context.Context, pod *v1.Pod, id string) error {
	if _, err := r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil && !isNotFound(err) {
		return fmt.Errorf("failed to stop sandbox %q of pod %s: %w", id, podName(pod), err)
	}
	if _, err := r.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}); err != nil && !isNotFound(err) {
		return fmt.Errorf("failed to remove sandbox %q of pod %s: %w", id, podName(pod), err)
	}
	return nil
}

// podName returns the name of a pod for error messages.
func podName(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
