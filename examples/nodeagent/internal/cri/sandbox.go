package cri

import (
	"context"
	"errors"
	"fmt"
	"path"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandboxConfig describes the sandbox of a pod. It is in the network of the host, so
// that no network plugin has to be there.
func (r *Runtime) sandboxConfig(pod *v1.Pod) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name:      pod.Name,
			Namespace: pod.Namespace,
			Uid:       string(pod.UID),
		},
		LogDirectory: r.logDirectory(pod),
		Labels:       sandboxLabels(pod),
		Annotations:  pod.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: namespaces()},
		},
	}
}

// namespaces are the kubelet's for a pod with hostNetwork: every container has
// processes of its own, which matters here, because the end of the first of them
// ends all.
func namespaces() *runtimeapi.NamespaceOption {
	return &runtimeapi.NamespaceOption{
		Network: runtimeapi.NamespaceMode_NODE,
		Pid:     runtimeapi.NamespaceMode_CONTAINER,
		Ipc:     runtimeapi.NamespaceMode_POD,
	}
}

// logDirectory is named as the kubelet names it.
func (r *Runtime) logDirectory(pod *v1.Pod) string {
	if r.options.LogDirectory == "" {
		return ""
	}
	return path.Join(r.options.LogDirectory, fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID))
}

// runSandbox gives the ID of a sandbox that is ready.
func (r *Runtime) runSandbox(ctx context.Context, pod *v1.Pod, config *runtimeapi.PodSandboxConfig) (string, error) {
	response, err := r.runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		return "", fmt.Errorf("failed to run the sandbox of pod %s: %w", podName(pod), err)
	}
	return response.GetPodSandboxId(), nil
}

// sandboxes gives the sandboxes of a pod, whatever their state.
func (r *Runtime) sandboxes(ctx context.Context, pod *v1.Pod) ([]*runtimeapi.PodSandbox, error) {
	request := &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: uidSelector(pod)}}
	response, err := r.runtime.ListPodSandbox(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("failed to list the sandboxes of pod %s: %w", podName(pod), err)
	}
	return response.GetItems(), nil
}

// removeSandbox stops a sandbox, which kills what still runs in it, and removes it
// with its containers and their records. One that is gone is no error.
func (r *Runtime) removeSandbox(ctx context.Context, pod *v1.Pod, id string) error {
	if _, err := r.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil && !gone(err) {
		return fmt.Errorf("failed to stop sandbox %q of pod %s: %w", id, podName(pod), err)
	}
	if _, err := r.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}); err != nil && !gone(err) {
		return fmt.Errorf("failed to remove sandbox %q of pod %s: %w", id, podName(pod), err)
	}
	return nil
}

// StopPod removes the sandboxes of a pod, with all that is in them. What still runs
// is killed without grace: stop the containers first. A pod that the runtime does
// not know is no error.
func (r *Runtime) StopPod(ctx context.Context, pod *v1.Pod) error {
	found, err := r.sandboxes(ctx, pod)
	if err != nil {
		return err
	}
	var failed []error
	for _, sandbox := range found {
		failed = append(failed, r.removeSandbox(ctx, pod, sandbox.GetId()))
	}
	return errors.Join(failed...)
}

// podName is how errors name a pod.
func podName(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
