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

// runtimeService has the methods of k8s.io/cri-api's RuntimeService that stop containers
// and sandboxes.
type runtimeService interface {
	StopContainer(ctx context.Context, containerID string, timeout int64) error
	StopPodSandbox(ctx context.Context, podSandboxID string) error
}

// kubeGenericRuntimeManager has the fields of the kubelet's type that are needed to kill
// pods, and the terminator.
type kubeGenericRuntimeManager struct {
	runtimeService runtimeService
	terminator     *lifecycle.Terminator
	runner         HandlerRunner
	runtimeName    string
	// restoreSpecs is the kubelet's restoreSpecsFromContainerLabels: it restores a pod
	// and a container from the container's labels if the kubelet no longer knows the pod.
	restoreSpecs func(ctx context.Context, id ContainerID) (*v1.Pod, *v1.Container, error)
}

// newTerminator is for NewKubeGenericRuntimeManager. Each kill gives it the runner of that
// moment, which the kubelet's tests replace. It sets no ExitWatcher, so a sleep hook goes on when its container has exited,
// as in the kubelet. An ExitWatcher over PLEG would end such hooks.
func newTerminator(service runtimeService, recorder record.EventRecorder) (*lifecycle.Terminator, error) {
	return lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: lifecycle.RuntimeFunc(func(ctx context.Context, id string, timeout int64) error {
			err := service.StopContainer(ctx, id, timeout)
			if isNotFound(err) {
				return fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, err)
			}
			return err
		}),
		Events:  recorder,
		Metrics: lifecycleMetrics(),
		Gates:   utilfeature.DefaultFeatureGate,
	})
}

// isNotFound is the IsNotFound of k8s.io/cri-api/pkg/errors.
func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// hooks implements [lifecycle.HandlerRunner] with the kubelet's HandlerRunner. The
// terminator has only the ID of a container, so hooks adds the name of the runtime.
type hooks struct {
	runner      HandlerRunner
	runtimeName string
}

func (h hooks) Run(ctx context.Context, id string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	return h.runner.Run(ctx, ContainerID{Type: h.runtimeName, ID: id}, pod, container, handler)
}

// setTerminationGracePeriod returns the grace period of a container in seconds.
func setTerminationGracePeriod(pod *v1.Pod, container *v1.Container, reason graceperiod.KillReason) int64 {
	return graceperiod.ForContainer(pod, container, reason)
}

// killContainer kills one container of a pod that goes on. The kubelet's last parameter,
// the termination order, is left out because only [lifecycle.Terminator.KillPod] orders
// containers.
func (m *kubeGenericRuntimeManager) killContainer(ctx context.Context, pod *v1.Pod, containerID ContainerID, containerName, message string, reason graceperiod.KillReason, gracePeriodOverride *int64) error {
	if pod == nil {
		var err error
		if pod, err = m.restore(ctx, &v1.Pod{}, containerID); err != nil {
			return err
		}
	}
	_, err := m.terminator.KillContainer(ctx, pod, lifecycle.Container{Name: containerName, ID: containerID.ID},
		lifecycle.ContainerRequest{
			Reason: reason, GracePeriodSeconds: gracePeriodOverride, Message: message,
			OneAttempt: true, Hooks: hooks{m.runner, m.runtimeName},
		})
	return err
}

// restore returns a pod made from a container's labels, together with the containers that
// were restored before.
func (m *kubeGenericRuntimeManager) restore(ctx context.Context, before *v1.Pod, id ContainerID) (*v1.Pod, error) {
	pod, spec, err := m.restoreSpecs(ctx, id)
	if err != nil {
		return nil, err
	}
	pod.Spec.Containers = append(before.Spec.Containers, *spec)
	return pod, nil
}

// killContainersWithSyncResult kills all running containers of a pod, sidecars last.
func (m *kubeGenericRuntimeManager) killContainersWithSyncResult(ctx context.Context, pod *v1.Pod, runningPod Pod, gracePeriodOverride *int64) (syncResults []*SyncResult) {
	if len(runningPod.Containers) == 0 {
		return nil
	}
	var running []lifecycle.Container
	restored := &v1.Pod{}
	for _, c := range runningPod.Containers {
		if pod == nil { // a container that cannot be restored does not prevent the kill of the others
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
	result, err := m.terminator.KillPod(ctx, pod, lifecycle.Request{
		GracePeriodSeconds: gracePeriodOverride, Containers: running,
		OneAttempt: true, Hooks: hooks{m.runner, m.runtimeName},
	})
	for _, c := range result.Containers {
		killed := NewSyncResult(KillContainer, c.Name)
		switch c.Outcome {
		case "": // ctx ended before the container did
			killed.Fail(ErrKillContainer, err.Error())
		case lifecycle.RuntimeStuck, lifecycle.LeftRunning:
			killed.Fail(ErrKillContainer, c.Err.Error())
		default: // the container has ended
		}
		syncResults = append(syncResults, killed)
	}
	return syncResults
}

// killPodWithSyncResult kills the containers of a pod and then its sandboxes, even if
// containers could not be killed. If everything was killed, the terminator forgets the
// pod.
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
		m.terminator.ForgetPod(runningPod.ID)
	}
	return result
}
