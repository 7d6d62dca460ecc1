package lifecycle

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// podStatusProvider returns the IPs of pods. The runtime implements it.
type podStatusProvider interface {
	GetPod(ctx context.Context, podUID types.UID) (*kubecontainer.Pod, error)
	GetPodStatus(ctx context.Context, pod *kubecontainer.Pod) (*kubecontainer.PodStatus, error)
}

// handlerRunner stands in for the kubelet's runner of hooks.
type handlerRunner struct{}

// NewHandlerRunner returns kubegrace's runner of hooks if the gate is on, and otherwise the kubelet's, which is a stand-in
// here.
func NewHandlerRunner(httpDoer kubetypes.HTTPDoer, commandRunner kubecontainer.CommandRunner, containerManager podStatusProvider, eventRecorder record.EventRecorder) kubecontainer.HandlerRunner {
	if kubegraceEnabled() {
		return newKubegraceRunner(httpDoer, commandRunner, containerManager, eventRecorder)
	}
	return &handlerRunner{}
}

// Run runs no hook. Its result shows that the kubelet's runner was called.
func (*handlerRunner) Run(context.Context, kubecontainer.ContainerID, *v1.Pod, *v1.Container, *v1.LifecycleHandler) (string, error) {
	return "the kubelet's", nil
}

// appArmorAdmitHandler and NewAppArmorAdmitHandler are in the kubelet's file and remain there.
type appArmorAdmitHandler struct{}

// Admit admits every pod.
func (*appArmorAdmitHandler) Admit(context.Context, *PodAdmitAttributes) PodAdmitResult {
	return PodAdmitResult{Admit: true}
}

// NewAppArmorAdmitHandler has a parameter in the kubelet.
func NewAppArmorAdmitHandler() PodAdmitHandler { return &appArmorAdmitHandler{} }
