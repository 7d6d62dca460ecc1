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

// NewHandlerRunner makes the runner of the kubelet's hooks. The user agent of httpGet hooks
// names the version of the fork, and not that of the kubelet which kubegrace follows.
func NewHandlerRunner(httpDoer HTTPDoer, commandRunner CommandRunner, containerManager podStatusProvider, eventRecorder record.EventRecorder) HandlerRunner {
	info := version.Get()
	return handlerRunner{lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{
		Commands:  commands{commandRunner},
		HTTP:      httpDoer,
		PodIP:     podIP(containerManager),
		UserAgent: fmt.Sprintf("kube-lifecycle/%s.%s", info.Major, info.Minor),
		Events:    eventRecorder,
		Metrics:   series(),
		Gates:     utilfeature.DefaultFeatureGate,
	})}
}

// series are in the registry of Kubernetes. Whoever asks again gets the same ones. Without
// them nothing is counted.
func series() *metrics.Lifecycle {
	registered, err := metrics.NewLifecycle(legacyregistry.Registerer(), metrics.Options{})
	if err != nil {
		klog.Background().Error(err, "Lifecycle hooks are not counted")
	}
	return registered
}

// handlerRunner is a [HandlerRunner]: kubegrace's, for which an ID is a string.
type handlerRunner struct{ hooks lifecycle.HandlerRunner }

func (r handlerRunner) Run(ctx context.Context, containerID ContainerID, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	return r.hooks.Run(ctx, containerID.String(), pod, container, handler)
}

// commands is a [lifecycle.CommandRunner] of the kubelet's.
type commands struct{ CommandRunner }

func (c commands) RunInContainer(ctx context.Context, containerID string, cmd []string, timeout time.Duration) ([]byte, error) {
	owner, id, _ := strings.Cut(containerID, "://")
	return c.CommandRunner.RunInContainer(ctx, ContainerID{Type: owner, ID: id}, cmd, timeout)
}

// podIP asks the runtime for the address of a pod. "" fails the hook.
func podIP(runtime podStatusProvider) func(context.Context, *v1.Pod) (string, error) {
	return func(ctx context.Context, pod *v1.Pod) (string, error) {
		status, err := runtime.GetPodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
		if err != nil || len(status.IPs) == 0 {
			return "", err
		}
		return status.IPs[0], nil
	}
}
