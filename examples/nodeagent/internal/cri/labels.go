package cri

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubelet/pkg/types"
)

// sandboxLabels returns the labels that the kubelet gives a sandbox: the pod's labels,
// and its name, namespace and UID.
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

// containerLabels returns the labels that the kubelet gives a container. The pod's labels
// are not among them.
func containerLabels(pod *v1.Pod, container *v1.Container) map[string]string {
	return map[string]string{
		types.KubernetesPodNameLabel:       pod.Name,
		types.KubernetesPodNamespaceLabel:  pod.Namespace,
		types.KubernetesPodUIDLabel:        string(pod.UID),
		types.KubernetesContainerNameLabel: container.Name,
	}
}

// uidSelector returns a label selector for the sandboxes of a pod.
func uidSelector(pod *v1.Pod) map[string]string {
	return map[string]string{types.KubernetesPodUIDLabel: string(pod.UID)}
}
