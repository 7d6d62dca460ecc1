package cri

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerConfig describes a container of a pod that is valid.
func (r *Runtime) containerConfig(pod *v1.Pod, container *v1.Container) *runtimeapi.ContainerConfig {
	config := &runtimeapi.ContainerConfig{
		Metadata:   &runtimeapi.ContainerMetadata{Name: container.Name},
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
	// A runtime that does not know the field leaves it out, and sends TERM.
	if r.signals {
		config.StopSignal, _ = stopSignal(container) // the pod is valid
	}
	if r.options.LogDirectory != "" {
		config.LogPath = container.Name + "/0.log" // the kubelet's, by the number of restarts
	}
	return config
}

// environment is what the manifest says, word for word: the kubelet would expand
// $(NAME) in it, and add the addresses of services.
func environment(container *v1.Container) []*runtimeapi.KeyValue {
	envs := make([]*runtimeapi.KeyValue, 0, len(container.Env))
	for _, env := range container.Env {
		envs = append(envs, &runtimeapi.KeyValue{Key: env.Name, Value: []byte(env.Value)})
	}
	return envs
}
