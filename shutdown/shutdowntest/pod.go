package shutdowntest

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod returns a running pod in namespace default. It has no containers. If graceSeconds is negative, the pod has no grace
// period.
func Pod(name string, priority int32, graceSeconds int64) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{Priority: &priority},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
	if graceSeconds >= 0 {
		pod.Spec.TerminationGracePeriodSeconds = &graceSeconds
	}
	return pod
}
