package apistatus

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// represents reports whether the pod on the API server is the node's pod, and not a newer
// pod with the same name. A static pod is represented by its mirror pod, which has
// another UID; its annotation has the hash of the static pod.
func represents(server, pod *v1.Pod) bool {
	if server.UID == pod.UID {
		return true
	}
	hash, hashed := pod.Annotations[staticpod.HashAnnotation]
	mirrored := server.Annotations[v1.MirrorPodAnnotationKey]
	return staticpod.Is(pod) && staticpod.IsMirror(server) && (!hashed || hash == mirrored)
}
