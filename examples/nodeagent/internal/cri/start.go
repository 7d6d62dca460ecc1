package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// cleanUpTimeout bounds the removal of a pod whose start failed. The start's own
// context may be over by then, and may be the reason.
const cleanUpTimeout = 30 * time.Second

// step is one container on the way to a running pod.
type step struct {
	container *v1.Container
	config    *runtimeapi.ContainerConfig
	awaited   bool // a plain init container: what follows starts after its exit
}

// StartPod runs the sandbox of a pod, its init containers one after the other, and
// then its containers, in the order of the manifest. A plain init container must
// exit with 0 before the next one starts; a sidecar (restartPolicy Always) stays.
// It returns the containers that stay, in the order in which they were started.
//
// A pod that has a sandbox that is ready, told by its UID, is adopted: those of its
// containers that run are returned, and nothing is started. A sandbox that is not
// ready, left by a host that went down, is removed first.
//
// A manifest that cannot be run as it is written, and an image that is missing, are
// errors before anything is made. A start that fails later, or whose ctx ends,
// removes what it made; in the second case the error wraps the cause of ctx.
func (r *Runtime) StartPod(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if err := ValidatePod(pod).ToAggregate(); err != nil {
		return nil, fmt.Errorf("pod %s: %w", podName(pod), err)
	}
	adopted, found, err := r.Adopt(ctx, pod)
	if found && errors.Is(err, podruntime.ErrChanged) {
		err = nil // what runs is as good as any until the agent stops it
	}
	if err != nil || found {
		return adopted, err
	}
	steps := r.steps(pod)
	if err := r.checkImages(ctx, pod, steps); err != nil {
		return nil, err
	}
	started, err := r.startFresh(ctx, pod, steps)
	if err != nil {
		err = withCause(ctx, err)
		// By its UID: the runtime may have made a sandbox whose ID did not arrive.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
		defer cancel()
		return nil, errors.Join(err, r.StopPod(ctx, pod))
	}
	return started, nil
}

// startFresh starts a pod of which nothing is there.
func (r *Runtime) startFresh(ctx context.Context, pod *v1.Pod, steps []step) ([]lifecycle.Container, error) {
	config := r.sandboxConfig(pod)
	sandbox, err := r.runSandbox(ctx, pod, config)
	if err != nil {
		return nil, err
	}
	return r.startAll(ctx, pod, sandbox, config, steps)
}

// steps plans the start of a pod.
func (r *Runtime) steps(pod *v1.Pod) []step {
	var steps []step
	plan := func(containers []v1.Container, init bool) {
		for i := range containers {
			container := &containers[i]
			steps = append(steps, step{
				container: container,
				config:    r.containerConfig(pod, container),
				awaited:   init && !restartable(container),
			})
		}
	}
	plan(pod.Spec.InitContainers, true)
	plan(pod.Spec.Containers, false)
	return steps
}

// restartable tells a sidecar from a plain init container (KEP-753).
func restartable(container *v1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// startAll goes through the steps and stops at the first that fails, which it names.
func (r *Runtime) startAll(ctx context.Context, pod *v1.Pod, sandbox string, config *runtimeapi.PodSandboxConfig, steps []step) ([]lifecycle.Container, error) {
	var started []lifecycle.Container
	for _, step := range steps {
		id, err := r.startOne(ctx, sandbox, config, step)
		if err == nil && step.awaited {
			err = r.awaitInit(ctx, id)
		}
		if err != nil {
			return nil, fmt.Errorf("pod %s, container %q: %w", podName(pod), step.container.Name, err)
		}
		if step.awaited {
			continue
		}
		r.warnOfStopSignal(ctx, pod, step, id)
		started = append(started, lifecycle.Container{Name: step.container.Name, ID: id})
	}
	return started, nil
}

// startOne creates and starts a container. One that was created and could not be
// started goes with its sandbox.
func (r *Runtime) startOne(ctx context.Context, sandbox string, config *runtimeapi.PodSandboxConfig, step step) (string, error) {
	request := &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: step.config, SandboxConfig: config}
	created, err := r.runtime.CreateContainer(ctx, request)
	if err != nil {
		return "", fmt.Errorf("failed to create: %w", err)
	}
	id := created.GetContainerId()
	if _, err := r.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		return "", fmt.Errorf("failed to start: %w", err)
	}
	return id, nil
}

// awaitInit waits for the exit of a plain init container.
func (r *Runtime) awaitInit(ctx context.Context, id string) error {
	select {
	case <-r.Exited(id):
	case <-ctx.Done():
		return fmt.Errorf("failed to await its exit: %w", ctx.Err())
	}
	response, err := r.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		return fmt.Errorf("failed to read its exit status: %w", err)
	}
	if code := response.GetStatus().GetExitCode(); code != 0 {
		return fmt.Errorf("init container exited with %d", code)
	}
	return nil
}
