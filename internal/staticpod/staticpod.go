// Package staticpod knows the pods that come from a manifest of the node, and the
// mirror pods that stand for them in the API.
package staticpod

import v1 "k8s.io/api/core/v1"

const (
	// SourceAnnotation says where an agent has a pod from: "api", or the file or URL
	// of a static pod. The kubelet sets it on every pod that it gets (its
	// ConfigSourceAnnotationKey).
	SourceAnnotation = "kubernetes.io/config.source"
	// HashAnnotation tells one manifest from another; the mirror pod has it as the
	// value of [v1.MirrorPodAnnotationKey] (the kubelet's ConfigHashAnnotationKey).
	HashAnnotation = "kubernetes.io/config.hash"

	sourceAPI = "api"
)

// Is tells whether a pod is static, as the kubelet does. A pod without a source, as
// an agent may hand it in, counts as one of the API.
func Is(pod *v1.Pod) bool {
	source, known := pod.Annotations[SourceAnnotation]
	return known && source != sourceAPI
}

// IsOrMirrors tells whether a pod is static, or is the mirror of one.
func IsOrMirrors(pod *v1.Pod) bool { return Is(pod) || IsMirror(pod) }

// IsMirror tells whether a pod of the API only shows a static one.
func IsMirror(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return mirror
}
