package graceperiod

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// minimumGracefulSeconds is the shortest grace period with which the API server leaves
// the deletion of a pod to its node. It replaces negative grace periods, and one that
// has ended already when a shorter one is requested.
const minimumGracefulSeconds int64 = 1

// ForDelete returns the grace period that the first delete of a pod gives it, in
// seconds and never negative. It is the API server's CheckGracefulDelete for pods, but
// writes nothing.
//
// options.gracePeriodSeconds decides if it is set, else
// spec.terminationGracePeriodSeconds, else the result is 0. A pod that is not
// scheduled to a node, or has finished (phase Failed or Succeeded), has nothing to stop
// and gets 0. A negative grace period becomes 1.
//
// graceful is what CheckGracefulDelete returns: true, also for a grace period of 0,
// and false only for nil options. A nil pod counts as not scheduled. [ExplainDelete]
// says which rule decided; [BeforeDelete] also handles repeated deletes.
func ForDelete(pod *v1.Pod, options *metav1.DeleteOptions) (seconds int64, graceful bool) {
	return forDelete(nil, pod, options), options != nil
}

// DeleteSeconds is [ForDelete] for pods that are no *v1.Pod, such as the internal type
// of an API server. spec is spec.terminationGracePeriodSeconds and requested is
// options.gracePeriodSeconds, both in seconds, nil if unset. scheduled says that
// spec.nodeName is set, terminated that status.phase is Failed or Succeeded.
//
// seconds is never negative. graceful is what CheckGracefulDelete has to return for
// options that are not nil: it is always true.
func DeleteSeconds(spec, requested *int64, scheduled, terminated bool) (seconds int64, graceful bool) {
	return deleteSeconds(nil, spec, requested, scheduled, terminated), true
}

// ExplainDelete returns the result of [ForDelete] with its reasons. The delete is
// graceful if the options are not nil.
func ExplainDelete(pod *v1.Pod, options *metav1.DeleteOptions) Explanation {
	var t trace
	return Explanation{Seconds: forDelete(&t, pod, options), steps: t.steps}
}

func forDelete(t *trace, pod *v1.Pod, options *metav1.DeleteOptions) int64 {
	if t.constant(ruleNoOptions, "options", 0, options == nil) {
		return 0
	}
	scheduled := pod != nil && pod.Spec.NodeName != ""
	return deleteSeconds(t, specGrace(pod), options.GracePeriodSeconds, scheduled, finished(pod))
}

func deleteSeconds(t *trace, spec, requested *int64, scheduled, terminated bool) int64 {
	seconds := requestedSeconds(t, spec, requested)
	if t.constant(ruleUnscheduled, "spec.nodeName", 0, !scheduled) {
		seconds = 0
	}
	if t.constant(ruleFinished, "status.phase", 0, terminated) {
		seconds = 0
	}
	if t.constant(ruleNegative, "", minimumGracefulSeconds, seconds < 0) {
		seconds = minimumGracefulSeconds
	}
	return seconds
}

// requestedSeconds returns the grace period of the delete options if they have one,
// else that of the pod's spec, else 0.
func requestedSeconds(t *trace, spec, requested *int64) int64 {
	if t.field(ruleOptions, "options.gracePeriodSeconds", requested, requested != nil) {
		return *requested
	}
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	t.constant(ruleNoGrace, "", 0, true)
	return 0
}

// finished reports whether the pod's phase is final, so that no container will run again.
func finished(pod *v1.Pod) bool {
	return pod != nil && (pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded)
}

// PodDeleteStrategy computes the grace period of pods for an API server whose pods are
// those of k8s.io/api (*v1.Pod); for the internal types of k8s.io/kubernetes there is
// [DeleteSeconds]. Embedded together with a runtime.ObjectTyper, it makes a strategy for
// rest.BeforeDelete of k8s.io/apiserver:
//
//	type strategy struct {
//		runtime.ObjectTyper // scheme.Scheme of client-go
//		graceperiod.PodDeleteStrategy
//	}
//
// The zero value is ready to use, and may be used concurrently.
type PodDeleteStrategy struct{}

// CheckGracefulDelete implements rest.RESTGracefulDeleteStrategy: it sets
// options.GracePeriodSeconds to the result of [ForDelete] and returns whether the delete
// is graceful. For nil options, and for an obj that is no *v1.Pod, it changes nothing
// and returns false.
func (PodDeleteStrategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return false
	}
	seconds, graceful := ForDelete(pod, options)
	if graceful {
		options.GracePeriodSeconds = &seconds
	}
	return graceful
}
