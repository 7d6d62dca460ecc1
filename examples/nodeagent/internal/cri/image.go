package cri

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// checkImages returns an error if the image of any container is missing in the runtime.
// StartPod calls it before it creates anything, because images are never pulled.
func (r *Runtime) checkImages(ctx context.Context, pod *v1.Pod, steps []startStep) error {
	errs := make([]error, 0, len(steps))
	for _, step := range steps {
		errs = append(errs, r.checkImage(ctx, pod, step.container))
	}
	return errors.Join(errs...)
}

// checkImage looks up one image by the name in the manifest. The runtime completes the
// name: nginx is docker.io/library/nginx:latest.
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
