package criruntime

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// PodStatus returns the pod's status with the current container statuses, including exit codes. If the runtime
// cannot tell an exit code, it is 137 with the reason ContainerStatusUnknown, as in the kubelet. PodStatus returns
// nil if the runtime has no container of the pod or does not answer within 30 s. It fits Status of
// podkiller.Options.
func (r *Runtime) PodStatus(ctx context.Context, pod *v1.Pod) *v1.PodStatus {
	if err := r.check(pod); err != nil {
		klog.FromContext(ctx).Error(err, "PodStatus had no effect")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	status := pod.Status.DeepCopy()
	containers, err := r.containersOf(ctx, pod)
	for _, c := range newestOfEachName(containers) {
		current, statusErr := r.statusOf(ctx, c)
		if !isNotFound(statusErr) { // a container that was removed since the list is no failure
			err = errors.Join(err, statusErr)
		}
		if statusErr == nil {
			setStatus(statusesWith(&pod.Spec, status, current.Name), current)
		}
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read the status of a pod from the container runtime", "pod", klog.KObj(pod))
	}
	if err != nil || len(containers) == 0 {
		return nil
	}
	return status
}

// statusOf converts a container of the runtime's list to the status of the API. It returns gRPC's error if the runtime does
// not answer a request or no longer has the container. A container in an unknown state counts as running, so that the
// caller stops it.
func (r *Runtime) statusOf(ctx context.Context, c *runtimeapi.Container) (v1.ContainerStatus, error) {
	name, err := r.runtimeName(ctx)
	if err != nil {
		return v1.ContainerStatus{}, err
	}
	status := v1.ContainerStatus{
		Name: containerName(c), Image: c.GetImage().GetImage(), ImageID: c.GetImageRef(),
		ContainerID: name + "://" + c.GetId(), RestartCount: restartCount(c),
	}
	switch c.GetState() {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		status.State.Waiting = &v1.ContainerStateWaiting{Reason: "ContainerCreating"} // the kubelet's reason
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		terminated, err := r.terminatedState(ctx, c.GetId())
		if err != nil {
			return v1.ContainerStatus{}, err
		}
		terminated.ContainerID = status.ContainerID
		status.State.Terminated = terminated
	default:
		status.State.Running = &v1.ContainerStateRunning{StartedAt: timeOf(c.GetCreatedAt())}
	}
	return status, nil
}

// terminatedState requests the exit code of an exited container, which a list does not have. The error is gRPC's if the runtime
// does not answer or no longer has the container. After any other error the exit code is the kubelet's for an unknown
// one, 137, because 0 would be a success.
func (r *Runtime) terminatedState(ctx context.Context, containerID string) (*v1.ContainerStateTerminated, error) {
	status, err := r.status(ctx, containerID)
	switch {
	case isUnanswered(err), isNotFound(err):
		return nil, err
	case err != nil:
		return &v1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown", Message: err.Error()}, nil //nolint:nilerr // the error is in the message
	default:
		return &v1.ContainerStateTerminated{
			ExitCode: status.GetExitCode(), Reason: status.GetReason(), Message: status.GetMessage(),
			StartedAt: timeOf(status.GetStartedAt()), FinishedAt: timeOf(status.GetFinishedAt()),
		}, nil
	}
}

// statusesWith returns the list of a pod's status to which the container with this name belongs: that of init,
// ephemeral or main containers.
func statusesWith(spec *v1.PodSpec, status *v1.PodStatus, name string) *[]v1.ContainerStatus {
	switch {
	case slices.ContainsFunc(spec.InitContainers, func(c v1.Container) bool { return c.Name == name }):
		return &status.InitContainerStatuses
	case slices.ContainsFunc(spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name }):
		return &status.EphemeralContainerStatuses
	default:
		return &status.ContainerStatuses
	}
}

// setStatus replaces the status of the container with the same name, or adds it if there is none.
func setStatus(statuses *[]v1.ContainerStatus, status v1.ContainerStatus) {
	i := slices.IndexFunc(*statuses, func(s v1.ContainerStatus) bool { return s.Name == status.Name })
	if i < 0 {
		*statuses = append(*statuses, status)
		return
	}
	(*statuses)[i] = status
}

// timeOf converts a CRI time in nanoseconds since 1970. 0 becomes the zero time.
func timeOf(nanoseconds int64) metav1.Time {
	if nanoseconds == 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(0, nanoseconds))
}
