// Package lifecycle declares what stands beside the copied file.
package lifecycle

import v1 "k8s.io/api/core/v1"

// PodAdmitAttributes is a pod that asks for admission.
type PodAdmitAttributes struct {
	Pod       *v1.Pod
	OtherPods []*v1.Pod
}

// PodAdmitResult is the decision about its admission.
type PodAdmitResult struct {
	Admit           bool
	Reason, Message string
}

// PodAdmitHandler decides about admission.
type PodAdmitHandler interface {
	Admit(attrs *PodAdmitAttributes) PodAdmitResult
}
