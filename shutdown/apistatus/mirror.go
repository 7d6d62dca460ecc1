package apistatus

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// represents tells whether the pod on the API server is that of the node, and not
// another one that has its name by now. A static pod is represented by its mirror
// pod, which has a UID of its own and names the pod it is made of.
func represents(server, pod *v1.Pod) bool {
	if server.UID == pod.UID {
		return true
	}
	hash, hashed := pod.Annotations[staticpod.HashAnnotation]
	mirrored := server.Annotations[v1.MirrorPodAnnotationKey]
	return staticpod.Is(pod) && staticpod.IsMirror(server) && (!hashed || hash == mirrored)
}
