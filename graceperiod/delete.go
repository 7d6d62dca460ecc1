package graceperiod

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// minimumGracefulSeconds is the least grace of a deletion in which the pod's node
// still has a part. The API server raises negative graces to it, and those that are
// over by the time they are asked for.
const minimumGracefulSeconds int64 = 1

// ForDelete is the grace that a first delete gives a pod, in seconds and never
// negative: the API server's CheckGracefulDelete for pods, without its writing.
//
// options.gracePeriodSeconds counts if it is set, else
// spec.terminationGracePeriodSeconds, else 0. A pod that was not scheduled to a
// node, or has finished (phase Failed or Succeeded), has nothing left to stop and
// gets 0; what is negative then becomes 1.
//
// graceful tells that the grace was decided, even if it is 0: it is false only for
// nil options, as for the API server. A nil pod counts as one that was not
// scheduled. [ExplainDelete] says which rule decided, [BeforeDelete] covers
// repeated deletes.
func ForDelete(pod *v1.Pod, options *metav1.DeleteOptions) (seconds int64, graceful bool) {
	return forDelete(nil, pod, options), options != nil
}

// DeleteSeconds is [ForDelete] over plain values, for pods of other types than those of
// k8s.io/api, such as the internal ones of an API server: spec is
// spec.terminationGracePeriodSeconds and requested is options.gracePeriodSeconds, in
// seconds, nil where there is none; scheduled says that spec.nodeName is set, terminated
// that status.phase is Failed or Succeeded. seconds is never negative. graceful is what
// CheckGracefulDelete is to return for options that are not nil: true, as a grace of 0 was
// decided too.
func DeleteSeconds(spec, requested *int64, scheduled, terminated bool) (seconds int64, graceful bool) {
	return deleteSeconds(nil, spec, requested, scheduled, terminated), true
}

// ExplainDelete is [ForDelete] with its reasons. The delete was graceful if the
// options are not nil.
func ExplainDelete(pod *v1.Pod, options *metav1.DeleteOptions) Explanation {
	var t trace
	return Explanation{Seconds: forDelete(&t, pod, options), Steps: t.steps}
}

func forDelete(t *trace, pod *v1.Pod, options *metav1.DeleteOptions) int64 {
	if t.constant(ruleNoOptions, "options", 0, options == nil) {
		return 0
	}
	scheduled := pod != nil && pod.Spec.NodeName != ""
	return deleteSeconds(t, specGrace(pod), options.GracePeriodSeconds, scheduled, finished(pod))
}

func deleteSeconds(t *trace, spec, requested *int64, scheduled, terminated bool) int64 {
	seconds := deleteWish(t, spec, requested)
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

// deleteWish is the grace that the options, else the pod ask for.
func deleteWish(t *trace, spec, requested *int64) int64 {
	if t.field(ruleOptions, "options.gracePeriodSeconds", requested, requested != nil) {
		return *requested
	}
	if t.field(ruleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	t.constant(ruleNoGrace, "", 0, true)
	return 0
}

// finished tells whether the pod's containers have all ended for good.
func finished(pod *v1.Pod) bool {
	return pod != nil && (pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded)
}

// PodDeleteStrategy gives an API server the grace of pods of k8s.io/api (*v1.Pod); for
// the internal types of k8s.io/kubernetes there is [DeleteSeconds]. Beside a
// runtime.ObjectTyper it makes a strategy for rest.BeforeDelete of k8s.io/apiserver:
//
//	type strategy struct {
//		runtime.ObjectTyper // scheme.Scheme of client-go
//		graceperiod.PodDeleteStrategy
//	}
//
// The zero value is ready, has no state and may be shared.
type PodDeleteStrategy struct{}

// CheckGracefulDelete writes the grace of [ForDelete] into the options and tells
// whether there is one (rest.RESTGracefulDeleteStrategy). obj is a *v1.Pod; any
// other kind has no graceful delete here, and its options are left alone, as nil
// options are.
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
