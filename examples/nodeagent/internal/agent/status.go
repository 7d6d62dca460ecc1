package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// statusOf returns the status of a pod that was started: its phase and what the runtime
// knows of its containers. With an error, the status lacks the containers that could not
// be asked for.
func statusOf(ctx context.Context, runtime podruntime.Runtime, p *pod) (*v1.PodStatus, error) {
	status := &v1.PodStatus{}
	reader, ok := runtime.(podruntime.StatusReader)
	var errs []error
	for _, c := range p.startedContainers() {
		if !ok {
			break
		}
		known, err := reader.ContainerStatus(ctx, c.ID)
		switch {
		case err == nil:
			restart := p.restartStateOf(c.Name)
			known.RestartCount = int32(restart.count)
			if restart.waiting {
				known.LastTerminationState, known.State = known.State, v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			}
			addContainer(status, p.spec, c.Name, known)
		case !errors.Is(err, lifecycle.ErrContainerNotFound):
			errs = append(errs, fmt.Errorf("failed to learn how container %s is: %w", c.Name, err))
		}
	}
	status.Phase = phaseOf(p.spec, status)
	return status, errors.Join(errs...)
}

// addContainer adds the status of a container to that of its pod. The status of a sidecar
// belongs to the init containers.
func addContainer(status *v1.PodStatus, spec *v1.Pod, name string, known v1.ContainerStatus) {
	list := &status.ContainerStatuses
	i := slices.IndexFunc(spec.Spec.Containers, func(c v1.Container) bool { return c.Name == name })
	containers := spec.Spec.Containers
	if i < 0 {
		list, containers = &status.InitContainerStatuses, spec.Spec.InitContainers
		i = slices.IndexFunc(containers, func(c v1.Container) bool { return c.Name == name })
	}
	if i < 0 {
		return // it was adopted, and is not in the manifest any more
	}
	known.Name, known.Image = name, containers[i].Image
	known.Ready = known.State.Running != nil
	known.Started = ptr.To(known.Ready)
	truncateTimes(&known)
	if started := startTimeOf(&known); !started.IsZero() && (status.StartTime == nil || started.Before(status.StartTime)) {
		status.StartTime = &started
	}
	*list = append(*list, known)
}

// truncateTimes truncates times to seconds, as the API server does.
func truncateTimes(status *v1.ContainerStatus) {
	if running := status.State.Running; running != nil {
		running.StartedAt = running.StartedAt.Rfc3339Copy()
	}
	if ended := status.State.Terminated; ended != nil {
		ended.StartedAt, ended.FinishedAt = ended.StartedAt.Rfc3339Copy(), ended.FinishedAt.Rfc3339Copy()
	}
}

// startTimeOf returns when a container was started, or zero if that is not known.
func startTimeOf(status *v1.ContainerStatus) metav1.Time {
	switch {
	case status.State.Running != nil:
		return status.State.Running.StartedAt
	case status.State.Terminated != nil:
		return status.State.Terminated.StartedAt
	}
	return metav1.Time{}
}

// phaseOf returns the phase of a pod that was started, as the kubelet's getPhase does. It
// is Succeeded or Failed when all containers have exited and none is to be restarted.
func phaseOf(spec *v1.Pod, status *v1.PodStatus) v1.PodPhase {
	failed := false
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if c.State.Terminated == nil {
			return v1.PodRunning
		}
		failed = failed || c.State.Terminated.ExitCode != 0
	}
	complete := len(status.ContainerStatuses) == len(spec.Spec.Containers)
	switch policy := spec.Spec.RestartPolicy; {
	case !complete, policy == v1.RestartPolicyAlways, policy == "":
		return v1.PodRunning
	case !failed:
		return v1.PodSucceeded
	case policy == v1.RestartPolicyNever:
		return v1.PodFailed
	}
	return v1.PodRunning
}
