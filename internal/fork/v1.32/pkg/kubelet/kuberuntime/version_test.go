package kuberuntime

import (
	v1 "k8s.io/api/core/v1"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func gracePeriodOf(pod *v1.Pod, container *v1.Container, reason containerKillReason) int64 {
	return setTerminationGracePeriod(pod, container, container.Name, kubecontainer.ContainerID{}, reason)
}
