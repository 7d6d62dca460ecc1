// Package podkey returns the map key of a pod, for packages lifecycle and shutdown.
package podkey

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Of returns the UID of a pod. For a pod without a UID, as in a program that makes its own pods, it returns [Name].
func Of(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return Name(pod)
}

// Name returns NAMESPACE/NAME of a pod. It is a types.UID because [Of] returns it as the key of a pod without a UID.
func Name(pod *v1.Pod) types.UID { return types.UID(pod.Namespace + "/" + pod.Name) }
