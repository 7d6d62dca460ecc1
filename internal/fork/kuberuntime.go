package fork

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// runtimeService is the part of the RuntimeService of k8s.io/cri-api that ends things.
type runtimeService interface {
	StopContainer(ctx context.Context, containerID string, timeout int64) error
	StopPodSandbox(ctx context.Context, podSandboxID string) error
}

// kubeGenericRuntimeManager has, of the kubelet's fields, those that end things, and the
// terminator.
type kubeGenericRuntimeManager struct {
	runtimeService runtimeService
	terminator     *lifecycle.Terminator
	// restoreSpecs is restoreSpecsFromContainerLabels: of a pod that the kubelet does not
	// know any more, what the labels of a container have.
	restoreSpecs func(ctx context.Context, id ContainerID) (*v1.Pod, *v1.Container, error)
}

// newTerminator is called by NewKubeGenericRuntimeManager once its runner is made. An
// ExitWatcher of the kubelet's, over PLEG, would end the sleep hooks of containers that have
// exited; without one they sleep on, as they do in the kubelet.
func newTerminator(service runtimeService, runtimeName string, runner HandlerRunner, recorder record.EventRecorder) (*lifecycle.Terminator, error) {
	return lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: lifecycle.RuntimeFunc(func(ctx context.Context, id string, timeout int64) error {
			err := service.StopContainer(ctx, id, timeout)
			if isNotFound(err) {
				return fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, err)
			}
			return err
		}),
		Hooks:   hooks{runner, runtimeName},
		Events:  recorder,
		Metrics: series(),
		Gates:   utilfeature.DefaultFeatureGate,
	})
}

// isNotFound is that of k8s.io/cri-api/pkg/errors.
func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// hooks is a [lifecycle.HandlerRunner] of the kubelet's. The terminator knows a container by
// its ID alone.
type hooks struct {
	runner      HandlerRunner
	runtimeName string
}

func (h hooks) Run(ctx context.Context, id string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	return h.runner.Run(ctx, ContainerID{Type: h.runtimeName, ID: id}, pod, container, handler)
}

// setTerminationGracePeriod is the grace of a container.
func setTerminationGracePeriod(pod *v1.Pod, container *v1.Container, reason graceperiod.KillReason) int64 {
	return graceperiod.ForContainer(pod, container, reason)
}

// killContainer ends one container of a pod that goes on. The kubelet's last parameter, the
// ordering of a pod that ends, has nothing to do here: only [lifecycle.Terminator.KillPod]
// orders.
func (m *kubeGenericRuntimeManager) killContainer(ctx context.Context, pod *v1.Pod, containerID ContainerID, containerName, message string, reason graceperiod.KillReason, gracePeriodOverride *int64) error {
	if pod == nil {
		var err error
		if pod, err = m.restore(ctx, &v1.Pod{}, containerID); err != nil {
			return err
		}
	}
	_, err := m.terminator.KillContainer(ctx, pod, lifecycle.Container{Name: containerName, ID: containerID.ID},
		lifecycle.ContainerRequest{Reason: reason, GracePeriodSeconds: gracePeriodOverride, Message: message})
	return err
}

// restore makes a pod of what the labels of a container have, and of the containers that were
// restored before.
func (m *kubeGenericRuntimeManager) restore(ctx context.Context, before *v1.Pod, id ContainerID) (*v1.Pod, error) {
	pod, spec, err := m.restoreSpecs(ctx, id)
	if err != nil {
		return nil, err
	}
	pod.Spec.Containers = append(before.Spec.Containers, *spec)
	return pod, nil
}

// killContainersWithSyncResult ends all containers of a pod that run, sidecars last.
func (m *kubeGenericRuntimeManager) killContainersWithSyncResult(ctx context.Context, pod *v1.Pod, runningPod Pod, gracePeriodOverride *int64) (syncResults []*SyncResult) {
	if len(runningPod.Containers) == 0 {
		return nil
	}
	var running []lifecycle.Container
	restored := &v1.Pod{}
	for _, c := range runningPod.Containers {
		if pod == nil { // one that cannot be restored keeps no other from being killed
			with, err := m.restore(ctx, restored, c.ID)
			if err != nil {
				failed := NewSyncResult(KillContainer, c.Name)
				failed.Fail(ErrKillContainer, err.Error())
				syncResults = append(syncResults, failed)
				continue
			}
			restored = with
		}
		running = append(running, lifecycle.Container{Name: c.Name, ID: c.ID.ID})
	}
	if len(running) == 0 {
		return syncResults
	}
	if pod == nil {
		pod = restored
	}
	result, err := m.terminator.KillPod(ctx, pod, lifecycle.Request{GracePeriodSeconds: gracePeriodOverride, Containers: running})
	for _, c := range result.Containers {
		killed := NewSyncResult(KillContainer, c.Name)
		switch c.Outcome {
		case "": // ctx has ended before the container
			killed.Fail(ErrKillContainer, err.Error())
		case lifecycle.RuntimeStuck, lifecycle.LeftRunning:
			killed.Fail(ErrKillContainer, c.Err.Error())
		default: // it has ended
		}
		syncResults = append(syncResults, killed)
	}
	return syncResults
}

// killPodWithSyncResult ends the containers of a pod, and then its sandboxes, whatever
// became of the containers. A pod of which nothing is left is forgotten.
func (m *kubeGenericRuntimeManager) killPodWithSyncResult(ctx context.Context, pod *v1.Pod, runningPod Pod, gracePeriodOverride *int64) (result PodSyncResult) {
	result.AddSyncResult(m.killContainersWithSyncResult(ctx, pod, runningPod, gracePeriodOverride)...)
	sandboxes := NewSyncResult(KillPodSandbox, runningPod.ID)
	result.AddSyncResult(sandboxes)
	for _, s := range runningPod.Sandboxes {
		if err := m.runtimeService.StopPodSandbox(ctx, s.ID.ID); err != nil && !isNotFound(err) {
			sandboxes.Fail(ErrKillPodSandbox, err.Error())
		}
	}
	if result.Error() == nil {
		m.terminator.Forget(runningPod.ID)
	}
	return result
}
