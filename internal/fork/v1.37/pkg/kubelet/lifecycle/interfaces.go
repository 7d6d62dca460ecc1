// Package lifecycle stands in for the kubelet's package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package lifecycle

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// PodAdmitAttributes is a pod to be admitted.
type PodAdmitAttributes struct {
	Pod       *v1.Pod
	OtherPods []*v1.Pod
	Operation Operation
}

// PodAdmitResult is the result of an admission.
type PodAdmitResult struct {
	Admit           bool
	Reason, Message string
}

// PodAdmitHandler admits or refuses pods.
type PodAdmitHandler interface {
	Admit(ctx context.Context, attrs *PodAdmitAttributes) PodAdmitResult
}

// Operation is the operation that is admitted.
type Operation string
