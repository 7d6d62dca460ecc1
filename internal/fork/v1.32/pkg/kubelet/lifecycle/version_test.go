package lifecycle

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func (w *hookFakes) GetPodStatus(context.Context, types.UID, string, string) (*kubecontainer.PodStatus, error) {
	if w.failing != "" {
		return nil, errors.New("the runtime is away")
	}
	return &kubecontainer.PodStatus{IPs: w.ips}, nil
}

// statusErrors has the text of the error by what of the runtime fails.
func statusErrors() map[string]string {
	return map[string]string{"GetPodStatus": "the runtime is away"}
}
