package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// killedCode is the exit code of a container that SIGKILL has ended.
const killedCode = 128 + 9

// Runtime simulates pods in the agent's process. Make one with [New].
type Runtime struct {
	*lifecycletest.Runtime

	mu   sync.Mutex // guards what follows; never held while anything waits
	pods []*v1.Pod  // those whose sandbox has not been stopped
}

// New makes a runtime in which the sidecars and main containers of the pods run. Plain init containers count
// as ended. The error names every script that cannot be parsed.
func New(pods []*v1.Pod) (*Runtime, error) {
	r := &Runtime{Runtime: lifecycletest.NewRuntime()}
	var errs []error
	for _, pod := range pods {
		pod = pod.DeepCopy()
		pod.Status = v1.PodStatus{Phase: v1.PodRunning}
		for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if i < len(pod.Spec.InitContainers) && c.RestartPolicy == nil {
				continue // a plain init container
			}
			script, err := scriptOf(pod, c.Name)
			errs = append(errs, err)
			status := v1.ContainerStatus{Name: c.Name, Image: c.Image, ContainerID: "embedded://" + id(pod, c.Name)}
			status.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now())}
			if i < len(pod.Spec.InitContainers) {
				pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
			} else {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
			}
			r.Start(pod, c.Name, id(pod, c.Name), script)
		}
		r.pods = append(r.pods, pod)
	}
	return r, errors.Join(errs...)
}

// id returns the ID of a container.
func id(pod *v1.Pod, container string) string { return fmt.Sprintf("%s/%s", pod.UID, container) }

// Pods returns the pods whose sandbox has not been stopped, with the statuses of their start.
func (r *Runtime) Pods(context.Context) ([]*v1.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pods), nil
}

// PodStatus returns the status of a pod, with the exit codes of the containers that have exited.
func (r *Runtime) PodStatus(_ context.Context, pod *v1.Pod) *v1.PodStatus {
	status := pod.Status.DeepCopy()
	for _, statuses := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			if code, exited := r.ExitCode(id(pod, s.Name)); exited {
				s.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: "Completed", ContainerID: s.ContainerID}}
			}
			if ended := s.State.Terminated; ended != nil && ended.ExitCode == killedCode {
				ended.Reason = "Error"
			}
		}
	}
	return status
}

// StopPodSandbox removes a pod from the list.
func (r *Runtime) StopPodSandbox(_ context.Context, pod *v1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = slices.DeleteFunc(slices.Clone(r.pods), func(p *v1.Pod) bool { return p.UID == pod.UID })
	return nil
}

// Close does nothing. The containers end with the process.
func (r *Runtime) Close() error { return nil }
