// Package core stands in for Kubernetes' package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package core

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodPhase is the phase of a pod.
type PodPhase string

// The terminal phases.
const (
	PodSucceeded PodPhase = "Succeeded"
	PodFailed    PodPhase = "Failed"
)

// Pod, PodSpec and PodStatus have the fields that a deletion depends on.
type (
	Pod struct {
		metav1.TypeMeta
		metav1.ObjectMeta
		Spec   PodSpec
		Status PodStatus
	}
	PodSpec struct {
		TerminationGracePeriodSeconds *int64
		NodeName                      string
	}
	PodStatus struct{ Phase PodPhase }
)

// DeepCopyObject implements [runtime.Object]. The copy shares Spec.TerminationGracePeriodSeconds with p: nothing here changes
// what that points to.
func (p *Pod) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}
