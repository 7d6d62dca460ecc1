// Package staticpod recognises static pods, which come from a manifest on the node, and
// mirror pods, which show them in the API.
package staticpod

import v1 "k8s.io/api/core/v1"

const (
	// SourceAnnotation says where a pod comes from: "api" for the API server, "file" or
	// "http" for a static pod. The kubelet sets it on every pod (its
	// ConfigSourceAnnotationKey).
	SourceAnnotation = "kubernetes.io/config.source"
	// HashAnnotation is the hash of a static pod's manifest. The mirror pod has the
	// same value in [v1.MirrorPodAnnotationKey] (the kubelet's ConfigHashAnnotationKey).
	HashAnnotation = "kubernetes.io/config.hash"

	sourceAPI = "api"
)

// Is reports whether a pod is a static pod, as the kubelet does. A pod without the
// annotation counts as a pod of the API.
func Is(pod *v1.Pod) bool {
	source, known := pod.Annotations[SourceAnnotation]
	return known && source != sourceAPI
}

// IsOrMirrors reports whether a pod is a static pod or a mirror pod.
func IsOrMirrors(pod *v1.Pod) bool { return Is(pod) || IsMirror(pod) }

// IsMirror reports whether a pod of the API is a mirror pod.
func IsMirror(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return mirror
}
