//go:build linux

package main

import (
	"context"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// podProcesses is a PodRuntime that runs whole pods as processes.
type podProcesses struct {
	runtime sleepRuntime

	mu   sync.Mutex
	pods map[types.UID]*v1.Pod // with the statuses that their containers had at the start
}

// newPodProcesses returns a PodRuntime that starts each container of a pod with runtime.
func newPodProcesses(runtime sleepRuntime) *podProcesses {
	return &podProcesses{runtime: runtime, pods: map[types.UID]*v1.Pod{}}
}

// options makes a provider use w.
func (w *podProcesses) options(o *virtualkubelet.Options) {
	o.Runtime, o.Pods, o.PollInterval = nil, w, 50*time.Millisecond
}

// Create starts all containers of a pod, unless it has done so before.
func (w *podProcesses) Create(ctx context.Context, pod *v1.Pod) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods[pod.UID] != nil {
		return nil
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		id, err := w.runtime.StartContainer(ctx, pod, c)
		if err != nil {
			return err
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, ContainerID: "process://" + id, Ready: true,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}},
		})
	}
	w.pods[pod.UID] = pod
	return nil
}

// Stop begins to stop the running containers, and does not wait for them.
func (w *podProcesses) Stop(ctx context.Context, pod *v1.Pod, graceSeconds int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods[pod.UID] == nil {
		return lifecycle.ErrContainerNotFound
	}
	running, err := w.runtime.Running(ctx, pod)
	for _, c := range running {
		go func() { _ = w.runtime.StopContainer(context.WithoutCancel(ctx), c.ID, graceSeconds) }()
	}
	return err
}

// Statuses returns all pods with the states of their containers. A pod with a running container is Running. Otherwise it is
// Failed if a container has failed, or Succeeded.
func (w *podProcesses) Statuses(context.Context) (pods []*v1.Pod, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range w.pods {
		pod = pod.DeepCopy()
		running, failed := 0, 0
		for i := range pod.Status.ContainerStatuses {
			id := strings.TrimPrefix(pod.Status.ContainerStatuses[i].ContainerID, "process://")
			select {
			case <-w.runtime.Exited(id):
				code, _ := w.runtime.ExitCode(id)
				pod.Status.ContainerStatuses[i].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
				if code != 0 {
					failed++
				}
			default:
				running++
			}
		}
		switch {
		case running > 0:
			pod.Status.Phase = v1.PodRunning
		case failed > 0:
			pod.Status.Phase = v1.PodFailed
		default:
			pod.Status.Phase = v1.PodSucceeded
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// Delete forgets a pod that has ended.
func (w *podProcesses) Delete(_ context.Context, pod *v1.Pod) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods[pod.UID] == nil {
		return lifecycle.ErrContainerNotFound
	}
	delete(w.pods, pod.UID)
	return nil
}
