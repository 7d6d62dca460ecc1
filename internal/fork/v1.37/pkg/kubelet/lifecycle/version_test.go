package lifecycle

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func (w *hookFakes) GetPod(_ context.Context, uid types.UID) (*kubecontainer.Pod, error) {
	if w.failing == "GetPod" {
		return nil, errors.New("the runtime is away")
	}
	return &kubecontainer.Pod{ID: uid}, nil
}

func (w *hookFakes) GetPodStatus(context.Context, *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	if w.failing == "GetPodStatus" {
		return nil, errors.New("the runtime is away")
	}
	return &kubecontainer.PodStatus{IPs: w.ips}, nil
}

// statusErrors has the text of the error by what of the runtime fails.
func statusErrors() map[string]string {
	return map[string]string{
		"GetPod":       "unable to get pod, event handlers may be invalid: the runtime is away",
		"GetPodStatus": "unable to get pod status, event handlers may be invalid: the runtime is away",
	}
}
