// Package staticpod recognises static pods, which are defined by a manifest on the node, and mirror pods,
// which represent them in the API.
package staticpod

import v1 "k8s.io/api/core/v1"

const (
	// SourceAnnotation is the source of a pod: "api" for the API server, "file" or "http" for a static
	// pod. The kubelet sets it on every pod (ConfigSourceAnnotationKey).
	SourceAnnotation = "kubernetes.io/config.source"
	// HashAnnotation is the hash of a static pod's manifest (the kubelet's ConfigHashAnnotationKey). The
	// mirror pod has the same value in [v1.MirrorPodAnnotationKey].
	HashAnnotation = "kubernetes.io/config.hash"

	sourceAPI = "api"
)

// Is reports whether a pod is a static pod, by the rule of the kubelet's IsStaticPod. A pod without
// [SourceAnnotation] is not static.
func Is(pod *v1.Pod) bool {
	source, isSet := pod.Annotations[SourceAnnotation]
	return isSet && source != sourceAPI
}

// IsOrMirrors reports whether a pod is a static pod or a mirror pod.
func IsOrMirrors(pod *v1.Pod) bool { return Is(pod) || IsMirror(pod) }

// IsMirror reports whether a pod is a mirror pod.
func IsMirror(pod *v1.Pod) bool {
	_, isSet := pod.Annotations[v1.MirrorPodAnnotationKey]
	return isSet
}
