// Package podkey identifies pods, the same way in the termination of one pod and in the shutdown
// of a node.
package podkey

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Of returns the UID of a pod, or its [Name] if it has none.
func Of(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return Name(pod)
}

// Name returns NAMESPACE/NAME.
func Name(pod *v1.Pod) types.UID { return types.UID(pod.Namespace + "/" + pod.Name) }
