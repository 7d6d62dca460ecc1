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

// kubegraceTerminator is a field of the runtime manager. The first kill creates the terminator, so that the manager's
// constructor need not change.
type kubegraceTerminator struct {
	once sync.Once
	*lifecycle.Terminator
}

// kubegrace returns the terminator of the manager, which the first call makes. It has no ExitWatcher, so a sleep hook
// continues after its container has exited, as in the kubelet. GiveUpAfter is unlimited because the CRI client ends a
// StopContainer two minutes after its timeout.
func (m *kubeGenericRuntimeManager) kubegrace() *lifecycle.Terminator {
	m.terminator.once.Do(func() {
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
			Runtime:     lifecycle.RuntimeFunc(m.kubegraceStop),
			GiveUpAfter: math.MaxInt64,
			Events:      m.recorder,
			Metrics:     kubegrace.LifecycleMetrics(klog.Background()),
			Gates:       utilfeature.DefaultFeatureGate,
		})
		if err != nil { // only if Runtime is nil
			panic(err)
		}
		m.terminator.Terminator = terminator
	})
	return m.terminator.Terminator
}

// runtimeError is an error of StopContainer. The kubelet's results and events quote it unchanged.
type runtimeError struct{ error }

// kubegraceStop stops a container. A missing container is [lifecycle.ErrContainerNotFound], which is no failure. Any other
// error becomes a runtimeError, from which kubegraceError later takes the runtime's own error.
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

// kubegraceError returns the error that the kubelet would return: that of the runtime, without context.
func kubegraceError(err error) error {
	var stopErr runtimeError
	if errors.As(err, &stopErr) {
		return stopErr.error
	}
	return err
}

// kubegraceHooks runs the hooks of one kill. It takes the manager's runner when the kill begins, and adds the runtime's
// name to container IDs.
type kubegraceHooks struct {
	runner      kubecontainer.HandlerRunner
	runtimeName string
}

// Run runs a hook with the kubelet's runner. id has no Type, such as containerd: Run adds it.
func (h kubegraceHooks) Run(ctx context.Context, id string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	return h.runner.Run(ctx, kubecontainer.ContainerID{Type: h.runtimeName, ID: id}, pod, container, handler)
}

// kubegraceKillContainer replaces killContainer. After a restart the kubelet may not know the pod: pod is then nil, and is
// restored from the labels of the container.
func (m *kubeGenericRuntimeManager) kubegraceKillContainer(ctx context.Context, pod *v1.Pod, containerID kubecontainer.ContainerID, containerName, message string, reason containerKillReason, gracePeriodOverride *int64) error {
	if pod == nil {
		restored, container, err := m.restoreSpecsFromContainerLabels(ctx, containerID)
		if err != nil {
			return err
		}
		pod = restored
		pod.Spec.Containers = []v1.Container{*container}
		defer m.kubegrace().Forget(pod) // no kill of the whole pod follows, which would forget it
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

// kubegraceKillContainers replaces killContainersWithSyncResult. It kills the containers of a pod and returns a result for
// each, which has an error if the container may still run.
func (m *kubeGenericRuntimeManager) kubegraceKillContainers(ctx context.Context, pod *v1.Pod, runningPod kubecontainer.Pod, gracePeriodOverride *int64) (syncResults []*kubecontainer.SyncResult) {
	running := []lifecycle.Container{} // not nil: nil means the containers that the runtime lists
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
		case "": // ctx ended before the kill
			result.Fail(kubecontainer.ErrKillContainer, err.Error())
		case lifecycle.OutcomeRuntimeStuck, lifecycle.OutcomeLeftRunning:
			result.Fail(kubecontainer.ErrKillContainer, kubegraceError(c.Err).Error())
		}
		syncResults = append(syncResults, result)
	}
	return syncResults
}

// kubegraceForget makes the terminator forget a pod if all its containers and sandboxes were killed. Otherwise the next
// kill must know which hooks have run.
func (m *kubeGenericRuntimeManager) kubegraceForget(podUID kubetypes.UID, result *kubecontainer.PodSyncResult) {
	if kubegraceEnabled() && result.Error() == nil {
		m.kubegrace().Forget(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: podUID}})
	}
}

// ShortenGracePeriod moves the deadline of a pod's termination to seconds from now, if that is earlier. The pod workers
// call it.
func (m *kubeGenericRuntimeManager) ShortenGracePeriod(pod *v1.Pod, seconds int64) {
	if termination, found := m.kubegrace().Termination(pod); found {
		termination.Shorten(seconds)
	}
}
