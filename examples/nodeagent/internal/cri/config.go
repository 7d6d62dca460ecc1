package cri

import (
	"fmt"
	"path"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// configBuilder writes the configuration messages with which CRI describes sandboxes
// and containers. It never changes after [New]. Its methods take pods that
// [ValidatePod] has accepted.
type configBuilder struct {
	logDirectory string // Options.LogDirectory
	stopSignals  bool   // whether the gate ContainerStopSignals is on
}

// sandbox describes the sandbox of a pod. The sandbox uses the network of the host, so
// that no network plugin is needed.
func (b configBuilder) sandbox(pod *v1.Pod) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name:      pod.Name,
			Namespace: pod.Namespace,
			Uid:       string(pod.UID),
		},
		LogDirectory: b.podLogDirectory(pod),
		Labels:       sandboxLabels(pod),
		Annotations:  pod.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: namespaces()},
		},
	}
}

// podLogDirectory returns the folder for the output of a pod's containers, named as
// the kubelet names it (BuildPodLogsDirectory), or "" when output is dropped.
func (b configBuilder) podLogDirectory(pod *v1.Pod) string {
	if b.logDirectory == "" {
		return ""
	}
	return path.Join(b.logDirectory, fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID))
}

// container describes a container of a pod. attempt counts its restarts, from 0; the
// kubelet puts it in the metadata and in the name of the log file.
func (b configBuilder) container(pod *v1.Pod, container *v1.Container, attempt uint32) *runtimeapi.ContainerConfig {
	config := &runtimeapi.ContainerConfig{
		Metadata:   &runtimeapi.ContainerMetadata{Name: container.Name, Attempt: attempt},
		Image:      &runtimeapi.ImageSpec{Image: container.Image, UserSpecifiedImage: container.Image},
		Command:    container.Command,
		Args:       container.Args,
		WorkingDir: container.WorkingDir,
		Envs:       environment(container),
		Labels:     containerLabels(pod, container),
		Stdin:      container.Stdin,
		StdinOnce:  container.StdinOnce,
		Tty:        container.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: namespaces()},
		},
	}
	if b.stopSignals {
		// A runtime older than the field ignores it and sends its own stop signal.
		// ValidatePod has refused signals that CRI does not have.
		config.StopSignal, _ = stopSignal(container)
	}
	if b.logDirectory != "" {
		config.LogPath = fmt.Sprintf("%s/%d.log", container.Name, attempt)
	}
	return config
}

// namespaces returns the namespace options that the kubelet uses for a pod with
// hostNetwork. Each container has a PID namespace of its own: when its first process
// exits, the kernel kills all others of the container.
func namespaces() *runtimeapi.NamespaceOption {
	return &runtimeapi.NamespaceOption{
		Network: runtimeapi.NamespaceMode_NODE,
		Pid:     runtimeapi.NamespaceMode_CONTAINER,
		Ipc:     runtimeapi.NamespaceMode_POD,
	}
}

// environment copies the variables of the manifest as they are. Unlike the kubelet, it
// does not expand $(NAME) and adds no variables for services.
func environment(container *v1.Container) []*runtimeapi.KeyValue {
	envs := make([]*runtimeapi.KeyValue, 0, len(container.Env))
	for _, env := range container.Env {
		envs = append(envs, &runtimeapi.KeyValue{Key: env.Name, Value: []byte(env.Value)})
	}
	return envs
}
