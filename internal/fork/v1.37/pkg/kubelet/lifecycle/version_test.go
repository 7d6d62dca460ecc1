package lifecycle

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func (w *hookFakes) GetPod(_ context.Context, uid types.UID) (*kubecontainer.Pod, error) {
	return &kubecontainer.Pod{ID: uid}, nil
}

func (w *hookFakes) GetPodStatus(context.Context, *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	return &kubecontainer.PodStatus{IPs: w.ips}, nil
}
