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

package lifecycle

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	gracefullifecycle "github.com/kubegrace/kubegrace/lifecycle"
)

// kubegraceEnabled reports whether NewHandlerRunner returns the runner of newKubegraceRunner.
func kubegraceEnabled() bool { return kubegrace.Enabled(kubegrace.Hooks) }

// kubegraceRunner returns kubegrace's runner for one container. It is called for each hook, because the runner reads the
// feature gates only once and gets container IDs without their Type, such as containerd.
type kubegraceRunner func(kubecontainer.ContainerID) gracefullifecycle.HandlerRunner

// newKubegraceRunner replaces NewHandlerRunner, and has its parameters. As there, the User-Agent of httpGet hooks has the
// version of this kubelet.
func newKubegraceRunner(httpDoer kubetypes.HTTPDoer, commandRunner kubecontainer.CommandRunner, containerManager podStatusProvider, eventRecorder record.EventRecorder) kubecontainer.HandlerRunner {
	series, info := kubegrace.LifecycleMetrics(klog.Background()), version.Get()
	return kubegraceRunner(func(id kubecontainer.ContainerID) gracefullifecycle.HandlerRunner {
		return gracefullifecycle.NewHandlerRunner(gracefullifecycle.HandlerRunnerOptions{
			Commands:  commands{commandRunner, id},
			HTTP:      httpDoer,
			PodIP:     func(ctx context.Context, pod *v1.Pod) (string, error) { return podIP(ctx, containerManager, pod) },
			UserAgent: fmt.Sprintf("kube-lifecycle/%s.%s", info.Major, info.Minor),
			Events:    eventRecorder,
			Metrics:   series,
			Gates:     utilfeature.DefaultFeatureGate,
		})
	})
}

// Run runs a hook with a new runner for the container.
func (r kubegraceRunner) Run(ctx context.Context, id kubecontainer.ContainerID, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	return r(id).Run(ctx, id.ID, pod, container, handler)
}

// podIP gets the IP of a pod from the runtime. A pod without an IP is an error, with the kubelet's text.
func podIP(ctx context.Context, pods podStatusProvider, pod *v1.Pod) (string, error) {
	status, err := podStatus(ctx, pods, pod)
	if err != nil {
		return "", err
	}
	if len(status.IPs) == 0 {
		return "", fmt.Errorf("failed to find networking container: %v", status)
	}
	return status.IPs[0], nil
}

// commands runs the commands of exec hooks in one container.
type commands struct {
	runner      kubecontainer.CommandRunner
	containerID kubecontainer.ContainerID // with its Type, which runner needs
}

// RunInContainer runs a command in the container. It ignores the ID that it gets, which has no Type.
func (c commands) RunInContainer(ctx context.Context, _ string, cmd []string, timeout time.Duration) ([]byte, error) {
	return c.runner.RunInContainer(ctx, c.containerID, cmd, timeout)
}
