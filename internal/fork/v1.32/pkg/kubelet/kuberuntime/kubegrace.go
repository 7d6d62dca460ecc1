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
	"errors"
	"math"
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
// when its container has exited, as in the kubelet. The CRI client ends a StopContainer that does
// not return, two minutes after its timeout, so the terminator need not.
func (m *kubeGenericRuntimeManager) kubegrace() *lifecycle.Terminator {
	m.terminator.made.Do(func() {
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
			Runtime:     lifecycle.RuntimeFunc(m.kubegraceStop),
			GiveUpAfter: math.MaxInt64,
			Events:      m.recorder,
			Metrics:     kubegrace.LifecycleMetrics(klog.Background()),
			Gates:       utilfeature.DefaultFeatureGate,
		})
		if err != nil { // only if the runtime were nil
			panic(err)
		}
		m.terminator.Terminator = terminator
	})
	return m.terminator.Terminator
}

// runtimeError is an error of StopContainer, which results and events of the kubelet quote
// unchanged.
type runtimeError struct{ error }

// kubegraceStop stops a container. Stopping one that does not exist succeeds.
func (m *kubeGenericRuntimeManager) kubegraceStop(ctx context.Context, id string, timeout int64) error {
	switch err := m.runtimeService.StopContainer(ctx, id, timeout); {
	case err == nil:
		return nil
	case crierror.IsNotFound(err):
		return lifecycle.ErrContainerNotFound
	default:
		return runtimeError{err}
	}
}

// kubegraceError returns the error of a kill as the kubelet has it: the runtime's own, if it is one.
func kubegraceError(err error) error {
	var runtimes runtimeError
	if errors.As(err, &runtimes) {
		return runtimes.error
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

// kubegraceKillContainer is killContainer without an order of containers. Of a pod that the kubelet
// does not know any more, the labels of the container tell what its kill needs.
func (m *kubeGenericRuntimeManager) kubegraceKillContainer(ctx context.Context, pod *v1.Pod, containerID kubecontainer.ContainerID, containerName, message string, reason containerKillReason, gracePeriodOverride *int64) error {
	if pod == nil {
		restored, container, err := m.restoreSpecsFromContainerLabels(ctx, containerID)
		if err != nil {
			return err
		}
		pod = restored
		pod.Spec.Containers = []v1.Container{*container}
		defer m.kubegrace().Forget(pod) // nobody kills the rest of it, after which it would be forgotten
	}
	_, err := m.kubegrace().KillContainer(ctx, pod, lifecycle.Container{Name: containerName, ID: containerID.ID}, lifecycle.ContainerRequest{
		Reason:             graceperiod.KillReason(reason),
		GracePeriodSeconds: gracePeriodOverride,
		Message:            message,
		OneAttempt:         true,
		Hooks:              kubegraceHooks{m.runner, m.runtimeName},
	})
	return kubegraceError(err)
}

// kubegraceKillContainers is killContainersWithSyncResult.
func (m *kubeGenericRuntimeManager) kubegraceKillContainers(ctx context.Context, pod *v1.Pod, runningPod kubecontainer.Pod, gracePeriodOverride *int64) (syncResults []*kubecontainer.SyncResult) {
	running := []lifecycle.Container{} // not nil, which would ask the runtime what runs
	for _, c := range runningPod.Containers {
		running = append(running, lifecycle.Container{Name: c.Name, ID: c.ID.ID})
	}
	killed, err := m.kubegrace().KillPod(ctx, pod, lifecycle.Request{
		GracePeriodSeconds: gracePeriodOverride,
		Containers:         running,
		OneAttempt:         true,
		Hooks:              kubegraceHooks{m.runner, m.runtimeName},
	})
	for _, c := range killed.Containers {
		result := kubecontainer.NewSyncResult(kubecontainer.KillContainer, c.Name)
		switch c.Outcome {
		case "": // ctx has ended before the kill
			result.Fail(kubecontainer.ErrKillContainer, err.Error())
		case lifecycle.OutcomeRuntimeStuck, lifecycle.OutcomeLeftRunning:
			result.Fail(kubecontainer.ErrKillContainer, kubegraceError(c.Err).Error())
		}
		syncResults = append(syncResults, result)
	}
	return syncResults
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
