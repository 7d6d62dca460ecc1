package apistatus

import v1 "k8s.io/api/core/v1"

// The annotations by which a kubelet tells where a pod comes from (its
// ConfigSourceAnnotationKey, ConfigMirrorAnnotationKey and ConfigHashAnnotationKey).
const (
	sourceAnnotation = "kubernetes.io/config.source"
	mirrorAnnotation = "kubernetes.io/config.mirror"
	hashAnnotation   = "kubernetes.io/config.hash"
	sourceAPI        = "api"
)

// represents tells whether the pod on the API server is that of the node, and not
// another one that has its name by now. A static pod is represented by its mirror
// pod, which has a UID of its own and names the pod it is made of.
func represents(server, pod *v1.Pod) bool {
	if server.UID == pod.UID {
		return true
	}
	hash, hashed := pod.Annotations[hashAnnotation]
	mirrored, mirror := server.Annotations[mirrorAnnotation]
	return isStatic(pod) && mirror && (!hashed || hash == mirrored)
}

// isStatic tells whether a pod is of a manifest of the node, as the kubelet does.
func isStatic(pod *v1.Pod) bool {
	source, known := pod.Annotations[sourceAnnotation]
	return known && source != sourceAPI
}

// isMirror tells whether a pod of the API server only shows a static pod.
func isMirror(server *v1.Pod) bool {
	_, mirror := server.Annotations[mirrorAnnotation]
	return mirror
}
