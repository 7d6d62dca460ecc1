package lifecycle

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// GetPodStatus returns a status with the IPs, unless failing is set. In this version no other method can fail.
func (f *hookFakes) GetPodStatus(context.Context, types.UID, string, string) (*kubecontainer.PodStatus, error) {
	if f.failing != "" {
		return nil, errors.New("the runtime is unavailable")
	}
	return &kubecontainer.PodStatus{IPs: f.ips}, nil
}

// statusErrors returns the text of the error for each method of the runtime that fails.
func statusErrors() map[string]string {
	return map[string]string{"GetPodStatus": "the runtime is unavailable"}
}
