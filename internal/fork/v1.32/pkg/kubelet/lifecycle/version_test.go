package lifecycle

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func (w *hookFakes) GetPodStatus(context.Context, types.UID, string, string) (*kubecontainer.PodStatus, error) {
	return &kubecontainer.PodStatus{IPs: w.ips}, nil
}
