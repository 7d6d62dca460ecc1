// Package lifecycle stands in for the kubelet's package of this name. It declares only what the files use that a fork
// copies from here (SERIES.md).
package lifecycle

import v1 "k8s.io/api/core/v1"

// PodAdmitAttributes is a pod to be admitted.
type PodAdmitAttributes struct {
	Pod       *v1.Pod
	OtherPods []*v1.Pod
}

// PodAdmitResult is the result of an admission.
type PodAdmitResult struct {
	Admit           bool
	Reason, Message string
}

// PodAdmitHandler admits or refuses pods.
type PodAdmitHandler interface {
	Admit(attrs *PodAdmitAttributes) PodAdmitResult
}
