package cri

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// checkImages makes sure that the images of all containers are there, before
// anything is started: nothing is pulled, and half a pod helps nobody.
func (r *Runtime) checkImages(ctx context.Context, pod *v1.Pod, steps []step) error {
	failed := make([]error, 0, len(steps))
	for _, step := range steps {
		failed = append(failed, r.checkImage(ctx, pod, step.container))
	}
	return errors.Join(failed...)
}

// checkImage asks for one image by the name in the manifest. It is the runtime that
// knows that nginx means docker.io/library/nginx:latest.
func (r *Runtime) checkImage(ctx context.Context, pod *v1.Pod, container *v1.Container) error {
	request := &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: container.Image}}
	response, err := r.images.ImageStatus(ctx, request)
	switch {
	case err != nil:
		return fmt.Errorf("pod %s, container %q: failed to look up image %q: %w", podName(pod), container.Name, container.Image, err)
	case response.GetImage() == nil:
		return fmt.Errorf("pod %s, container %q: image %q is not in the container runtime, and images are not pulled", podName(pod), container.Name, container.Image)
	}
	return nil
}
