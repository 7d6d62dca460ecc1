// Package core declares the API server's own pod, as far as the copied files use it.
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

// Pod, PodSpec and PodStatus have the fields that decide about a delete.
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

// DeepCopyObject implements [runtime.Object].
func (p *Pod) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}
