package cri

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// cleanUpTimeout bounds the removal of a pod whose start failed. The removal does not
// use the context of the start, because its end may be why the start failed.
const cleanUpTimeout = 30 * time.Second

// startStep is the start of one container of a pod.
type startStep struct {
	container     *v1.Container
	config        *runtimeapi.ContainerConfig
	initContainer bool // a plain one: the next step begins after it has exited with 0
}

// StartPod runs the sandbox of a pod, its init containers one after the other, and
// then its containers, in the order of the manifest. A plain init container must
// exit with 0 before the next container starts; a sidecar (restartPolicy Always) keeps
// running. StartPod returns all containers but the plain init containers, in the order
// in which they were started.
//
// If the runtime has a ready sandbox with the pod's UID, the pod is adopted: StartPod
// returns those of its containers that run, and starts nothing. Sandboxes of the pod
// that are not ready, as the reboot of a host leaves them, are removed first.
//
// A manifest that [ValidatePod] refuses and an image that is missing are errors before
// anything is created. A start that fails later, or whose ctx ends, stops and removes what it
// created, also a container that was created and whose start has failed. What runs has the pod's grace
// period for that, 20 s at most, or 2 s if ctx has ended. If ctx has ended, the error wraps its cause.
func (r *Runtime) StartPod(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if err := ValidatePod(pod).ToAggregate(); err != nil {
		return nil, fmt.Errorf("pod %s: %w", podName(pod), err)
	}
	adopted, found, err := r.Adopt(ctx, pod)
	if found && errors.Is(err, podruntime.ErrChanged) {
		err = nil // the containers of the older manifest run on until the agent stops them
	}
	if err != nil || found {
		return adopted, err
	}
	steps := r.startSteps(pod)
	if err := r.checkImages(ctx, pod, steps); err != nil {
		return nil, err
	}
	started, err := r.startNewPod(ctx, pod, steps)
	if err != nil {
		err = withCause(ctx, err)
		grace := cleanUpGrace(ctx, pod)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
		defer cancel()
		r.stopContainers(ctx, pod, started, grace)
		// StopPod finds the sandbox by the pod's UID. Its ID may be unknown here: the
		// runtime may have created it although the answer was lost.
		return nil, errors.Join(err, r.StopPod(ctx, pod))
	}
	return started, nil
}

// startSteps lists the starts of a pod's containers, in order.
func (r *Runtime) startSteps(pod *v1.Pod) []startStep {
	steps := make([]startStep, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		steps = append(steps, startStep{container, r.configs.container(pod, container, 0), !isSidecar(container)})
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		steps = append(steps, startStep{container, r.configs.container(pod, container, 0), false})
	}
	return steps
}

// isSidecar reports whether an init container is a sidecar (KEP-753).
func isSidecar(container *v1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// startNewPod runs the sandbox of a pod that the runtime does not know yet, and then
// takes the steps in order, up to the first that fails, whose container the error names. It
// returns the containers that may run, also with an error.
func (r *Runtime) startNewPod(ctx context.Context, pod *v1.Pod, steps []startStep) ([]lifecycle.Container, error) {
	sandboxConfig := r.configs.sandbox(pod)
	sandboxID, err := r.runSandbox(ctx, pod, sandboxConfig)
	if err != nil {
		return nil, err
	}
	var started []lifecycle.Container
	for _, step := range steps {
		request := &runtimeapi.CreateContainerRequest{PodSandboxId: sandboxID, Config: step.config, SandboxConfig: sandboxConfig}
		id, err := r.StartContainer(ctx, request)
		if err == nil && step.initContainer {
			err = r.waitForInitContainer(ctx, id)
		}
		if err != nil {
			if id != "" {
				started = append(started, lifecycle.Container{Name: step.container.Name, ID: id})
			}
			return started, fmt.Errorf("pod %s, container %q: %w", podName(pod), step.container.Name, err)
		}
		if step.initContainer {
			continue
		}
		r.warnOfIgnoredStopSignal(ctx, pod, step, id)
		started = append(started, lifecycle.Container{Name: step.container.Name, ID: id})
	}
	return started, nil
}

// cleanUpGrace returns the grace period of the containers of a pod whose start has failed.
func cleanUpGrace(ctx context.Context, pod *v1.Pod) int64 {
	if ctx.Err() != nil {
		return graceperiod.MinimumContainerSeconds // whoever has cancelled the start waits for its end
	}
	return min(graceperiod.ForContainer(pod, nil, ""), 20)
}

// stopContainers stops containers of a pod side by side. One that cannot be stopped is logged, and killed
// with its sandbox.
func (r *Runtime) stopContainers(ctx context.Context, pod *v1.Pod, containers []lifecycle.Container, grace int64) {
	var stops sync.WaitGroup
	for _, c := range containers {
		stops.Go(func() {
			if err := r.StopContainer(ctx, c.ID, grace); err != nil {
				klog.FromContext(ctx).Error(err, "Failed to stop a container of a pod that was not started", "pod", klog.KObj(pod))
			}
		})
	}
	stops.Wait()
}

// waitForInitContainer returns when a plain init container has exited. An exit code
// other than 0 is an error.
func (r *Runtime) waitForInitContainer(ctx context.Context, id string) error {
	select {
	case <-r.Exited(id):
	case <-ctx.Done():
		return fmt.Errorf("failed to await its exit: %w", ctx.Err())
	}
	status, err := r.ContainerStatus(ctx, id)
	if err != nil {
		return err
	}
	if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
		return fmt.Errorf("init container exited with %d", ended.ExitCode)
	}
	return nil
}
