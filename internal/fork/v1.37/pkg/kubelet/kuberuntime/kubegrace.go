/*
Copyright The kubegrace Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package kuberuntime

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubetypes "k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	crierror "k8s.io/cri-api/pkg/errors"
	"k8s.io/klog/v2"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// kubegraceEnabled reports whether containers are stopped by kubegrace.
func kubegraceEnabled() bool { return kubegrace.Enabled(kubegrace.Termination) }

// kubegraceTerminator is a field of the runtime manager: the terminator that stops its
// containers. It is made with the first kill, so that its zero value can be used.
type kubegraceTerminator struct {
	made sync.Once
	*lifecycle.Terminator
}

// kubegrace returns the terminator of the manager. It has no ExitWatcher, so a sleep hook goes on
// when its container has exited, as in the kubelet.
func (m *kubeGenericRuntimeManager) kubegrace() *lifecycle.Terminator {
	m.terminator.made.Do(func() {
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
			Runtime: lifecycle.RuntimeFunc(m.stopContainer),
			Events:  m.recorder,
			Metrics: kubegrace.LifecycleMetrics(klog.Background()),
			Gates:   utilfeature.DefaultFeatureGate,
		})
		if err != nil { // only if the runtime were nil
			panic(err)
		}
		m.terminator.Terminator = terminator
	})
	return m.terminator.Terminator
}

// stopContainer stops a container and says in kubegrace's words that there is none.
func (m *kubeGenericRuntimeManager) stopContainer(ctx context.Context, id string, timeout int64) error {
	err := m.runtimeService.StopContainer(ctx, id, timeout)
	if err != nil && crierror.IsNotFound(err) {
		return fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, err)
	}
	return err
}

// kubegraceHooks runs the hooks of one kill with the runner of that moment, and adds the name of
// the runtime to the IDs of containers.
type kubegraceHooks struct {
	runner      kubecontainer.HandlerRunner
	runtimeName string
}

// Run runs a hook.
func (h kubegraceHooks) Run(ctx context.Context, id string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	return h.runner.Run(ctx, kubecontainer.ContainerID{Type: h.runtimeName, ID: id}, pod, container, handler)
}

// kubegraceKillContainer kills one container of a pod that goes on. A failed stop is returned at
// once, as by killContainer; the next call has the whole grace period again, and runs no hook again.
func (m *kubeGenericRuntimeManager) kubegraceKillContainer(ctx context.Context, pod *v1.Pod, containerID kubecontainer.ContainerID, containerName, message string, reason containerKillReason, gracePeriodOverride *int64) error {
	terminator, known := m.kubegrace(), pod != nil
	if !known {
		var err error
		if pod, err = m.kubegraceRestore(ctx, &v1.Pod{}, containerID); err != nil {
			return err
		}
	}
	_, err := terminator.KillContainer(ctx, pod, lifecycle.Container{Name: containerName, ID: containerID.ID}, lifecycle.ContainerRequest{
		Reason:             graceperiod.KillReason(reason),
		GracePeriodSeconds: gracePeriodOverride,
		Message:            message,
		OneAttempt:         true,
		Hooks:              kubegraceHooks{m.runner, m.runtimeName},
	})
	if err == nil && !known { // nobody kills the rest of this pod, after which it would be forgotten
		terminator.Forget(pod)
	}
	return err
}

// kubegraceRestore returns the pod of a container, made from the container's labels, with the
// containers that were restored before.
func (m *kubeGenericRuntimeManager) kubegraceRestore(ctx context.Context, before *v1.Pod, id kubecontainer.ContainerID) (*v1.Pod, error) {
	pod, spec, err := m.restoreSpecsFromContainerLabels(ctx, id)
	if err != nil {
		return nil, err
	}
	pod.Spec.Containers = append(before.Spec.Containers, *spec)
	return pod, nil
}

// kubegraceKillContainers kills all running containers of a pod, sidecars last.
func (m *kubeGenericRuntimeManager) kubegraceKillContainers(ctx context.Context, pod *v1.Pod, runningPod kubecontainer.Pod, gracePeriodOverride *int64) (results []*kubecontainer.SyncResult) {
	running := []lifecycle.Container{}
	restored := &v1.Pod{}
	for _, c := range runningPod.Containers {
		if pod == nil { // a container that cannot be restored does not prevent the kill of the others
			with, err := m.kubegraceRestore(ctx, restored, c.ID)
			if err != nil {
				results = append(results, failedKill(c.Name, err))
				continue
			}
			restored = with
		}
		running = append(running, lifecycle.Container{Name: c.Name, ID: c.ID.ID})
	}
	if len(running) == 0 {
		return results
	}
	if pod == nil {
		pod = restored
	}
	killed, err := m.kubegrace().KillPod(ctx, pod, lifecycle.Request{
		GracePeriodSeconds: gracePeriodOverride,
		Containers:         running,
		OneAttempt:         true,
		Hooks:              kubegraceHooks{m.runner, m.runtimeName},
	})
	for _, c := range killed.Containers {
		switch c.Outcome {
		case "": // ctx has ended before the container
			results = append(results, failedKill(c.Name, err))
		case lifecycle.RuntimeStuck, lifecycle.LeftRunning:
			results = append(results, failedKill(c.Name, c.Err))
		default:
			results = append(results, kubecontainer.NewSyncResult(kubecontainer.KillContainer, c.Name))
		}
	}
	return results
}

// failedKill returns the result of a kill that has failed.
func failedKill(name string, err error) *kubecontainer.SyncResult {
	result := kubecontainer.NewSyncResult(kubecontainer.KillContainer, name)
	result.Fail(kubecontainer.ErrKillContainer, err.Error())
	return result
}

// kubegraceForget forgets a pod whose containers and sandboxes were all killed.
func (m *kubeGenericRuntimeManager) kubegraceForget(pod kubetypes.UID, result *kubecontainer.PodSyncResult) {
	if kubegraceEnabled() && result.Error() == nil {
		m.kubegrace().Forget(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod}})
	}
}

// ShortenGracePeriod moves the deadline of a kill that is under way to so many seconds from now,
// if that is earlier. The pod workers call it.
func (m *kubeGenericRuntimeManager) ShortenGracePeriod(pod *v1.Pod, seconds int64) {
	if termination, found := m.kubegrace().Termination(pod); found {
		termination.Shorten(seconds)
	}
}
