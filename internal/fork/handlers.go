package fork

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
)

// NewHandlerRunner returns the runner of the kubelet's hooks. The User-Agent of httpGet
// hooks has the version of the fork.
func NewHandlerRunner(httpDoer HTTPDoer, commandRunner CommandRunner, containerManager podStatusProvider, eventRecorder record.EventRecorder) HandlerRunner {
	info := version.Get()
	return handlerRunner{lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{
		Commands:  commands{commandRunner},
		HTTP:      httpDoer,
		PodIP:     podIP(containerManager),
		UserAgent: fmt.Sprintf("kube-lifecycle/%s.%s", info.Major, info.Minor),
		Events:    eventRecorder,
		Metrics:   lifecycleMetrics(),
		Gates:     utilfeature.DefaultFeatureGate,
	})}
}

// lifecycleMetrics returns the lifecycle metrics in the registry of Kubernetes. Each call
// returns the same metrics. If they cannot be registered, nothing is counted.
func lifecycleMetrics() *metrics.Lifecycle {
	registered, err := metrics.NewLifecycle(legacyregistry.Registerer(), metrics.Options{})
	if err != nil {
		klog.Background().Error(err, "Lifecycle hooks are not counted")
	}
	return registered
}

// handlerRunner implements the kubelet's [HandlerRunner] with kubegrace's, which takes
// the ID as a string.
type handlerRunner struct{ hooks lifecycle.HandlerRunner }

func (r handlerRunner) Run(ctx context.Context, containerID ContainerID, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	return r.hooks.Run(ctx, containerID.String(), pod, container, handler)
}

// commands implements [lifecycle.CommandRunner] with the kubelet's CommandRunner.
type commands struct{ CommandRunner }

func (c commands) RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error) {
	owner, id, _ := strings.Cut(containerID, "://")
	return c.CommandRunner.RunInContainer(ctx, ContainerID{Type: owner, ID: id}, cmd, timeout)
}

// podIP returns a function that asks the runtime for the IP of a pod. An empty result
// fails the hook.
func podIP(runtime podStatusProvider) func(context.Context, *v1.Pod) (string, error) {
	return func(ctx context.Context, pod *v1.Pod) (string, error) {
		status, err := runtime.GetPodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
		if err != nil || len(status.IPs) == 0 {
			return "", err
		}
		return status.IPs[0], nil
	}
}
