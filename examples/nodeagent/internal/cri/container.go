package cri

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerConfig describes a container, or says what keeps it from being run as
// its pod asks for it.
func (r *Runtime) containerConfig(pod *v1.Pod, container *v1.Container) (*runtimeapi.ContainerConfig, error) {
	signal, err := stopSignal(container)
	if err := errors.Join(err, unsupported(container)); err != nil {
		return nil, fmt.Errorf("pod %s, container %q: %w", podName(pod), container.Name, err)
	}
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
	if r.signals {
		config.StopSignal = signal
	}
	if r.options.LogDirectory != "" {
		config.LogPath = container.Name + "/0.log" // the kubelet's, by the number of restarts
	}
	return config, nil
}

func environment(container *v1.Container) []*runtimeapi.KeyValue {
	var envs []*runtimeapi.KeyValue
	for _, env := range container.Env {
		envs = append(envs, &runtimeapi.KeyValue{Key: env.Name, Value: []byte(env.Value)})
	}
	return envs
}

// unsupported names every field of a container that would be missing inside it, or
// would hold it in more loosely than its author meant.
func unsupported(container *v1.Container) error {
	var failed []error
	refuse := func(field string) {
		failed = append(failed, fmt.Errorf("%s is not supported by the cri runtime of this agent", field))
	}
	if len(container.VolumeMounts) > 0 {
		refuse(fmt.Sprintf("volumeMounts (%q)", container.VolumeMounts[0].Name))
	}
	if len(container.VolumeDevices) > 0 {
		refuse(fmt.Sprintf("volumeDevices (%q)", container.VolumeDevices[0].Name))
	}
	if len(container.EnvFrom) > 0 {
		refuse("envFrom")
	}
	for _, env := range container.Env {
		if env.ValueFrom != nil {
			refuse(fmt.Sprintf("valueFrom of env %q", env.Name))
		}
	}
	if container.SecurityContext != nil {
		refuse("securityContext")
	}
	return errors.Join(failed...)
}
