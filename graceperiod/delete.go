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

// ExplainDelete is [ForDelete] with its reasons. The delete was graceful if the
// options are not nil.
func ExplainDelete(pod *v1.Pod, options *metav1.DeleteOptions) Explanation {
	var t trace
	return Explanation{Seconds: forDelete(&t, pod, options), Steps: t.steps}
}

func forDelete(t *trace, pod *v1.Pod, options *metav1.DeleteOptions) int64 {
	if t.constant(RuleNoOptions, "options", 0, options == nil) {
		return 0
	}
	seconds := deleteWish(t, pod, options)
	if t.constant(RuleUnscheduled, "spec.nodeName", 0, pod == nil || pod.Spec.NodeName == "") {
		seconds = 0
	}
	if t.constant(RuleFinished, "status.phase", 0, finished(pod)) {
		seconds = 0
	}
	if t.constant(RuleNegative, "", minimumGracefulSeconds, seconds < 0) {
		seconds = minimumGracefulSeconds
	}
	return seconds
}

// deleteWish is the grace that the options, else the pod ask for.
func deleteWish(t *trace, pod *v1.Pod, options *metav1.DeleteOptions) int64 {
	if wish := options.GracePeriodSeconds; t.field(RuleOptions, "options.gracePeriodSeconds", wish, wish != nil) {
		return *wish
	}
	if spec := specGrace(pod); t.field(RuleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	t.constant(RuleNoGrace, "", 0, true)
	return 0
}

// finished tells whether the pod's containers have all ended for good.
func finished(pod *v1.Pod) bool {
	return pod != nil && (pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded)
}

// PodDeleteStrategy gives an API server the grace of pods. Beside a
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
