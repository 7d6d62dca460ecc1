package cri

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubelet/pkg/types"
)

// sandboxLabels are those of the kubelet: the pod's own, and its name, namespace and
// UID.
func sandboxLabels(pod *v1.Pod) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, pod.Labels)
	maps.Copy(labels, map[string]string{
		types.KubernetesPodNameLabel:      pod.Name,
		types.KubernetesPodNamespaceLabel: pod.Namespace,
		types.KubernetesPodUIDLabel:       string(pod.UID),
	})
	return labels
}

// containerLabels are those of the kubelet, which leaves the pod's own out here.
func containerLabels(pod *v1.Pod, container *v1.Container) map[string]string {
	return map[string]string{
		types.KubernetesPodNameLabel:       pod.Name,
		types.KubernetesPodNamespaceLabel:  pod.Namespace,
		types.KubernetesPodUIDLabel:        string(pod.UID),
		types.KubernetesContainerNameLabel: container.Name,
	}
}

// uidSelector selects what belongs to pod.
func uidSelector(pod *v1.Pod) map[string]string {
	return map[string]string{types.KubernetesPodUIDLabel: string(pod.UID)}
}
