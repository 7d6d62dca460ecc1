package lifecycle

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// GetPod returns the pod, unless failing says that this method fails.
func (f *hookFakes) GetPod(_ context.Context, uid types.UID) (*kubecontainer.Pod, error) {
	if f.failing == "GetPod" {
		return nil, errors.New("the runtime is unavailable")
	}
	return &kubecontainer.Pod{ID: uid}, nil
}

// GetPodStatus returns a status with the IPs, unless failing says that this method fails.
func (f *hookFakes) GetPodStatus(context.Context, *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	if f.failing == "GetPodStatus" {
		return nil, errors.New("the runtime is unavailable")
	}
	return &kubecontainer.PodStatus{IPs: f.ips}, nil
}

// statusErrors returns the text of the error for each method of the runtime that fails.
func statusErrors() map[string]string {
	return map[string]string{
		"GetPod":       "unable to get pod, event handlers may be invalid: the runtime is unavailable",
		"GetPodStatus": "unable to get pod status, event handlers may be invalid: the runtime is unavailable",
	}
}
