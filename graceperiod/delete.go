package graceperiod

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// minimumGracefulSeconds is the shortest grace period of a graceful delete. It replaces a
// negative grace period, and one that was shortened so much that it has already ended.
const minimumGracefulSeconds int64 = 1

// ForDelete returns the grace period, in seconds, that the first delete gives a pod. It computes what the API server's
// CheckGracefulDelete for pods does, but does not change options. The result is never negative.
//
// The result is options.gracePeriodSeconds if set, else
// spec.terminationGracePeriodSeconds, else 0. A pod that is not scheduled to a node or has
// finished (phase Failed or Succeeded) gets 0. A negative grace period becomes 1.
//
// graceful is the result of CheckGracefulDelete: false for nil options, else true, even if
// seconds is 0. A nil pod counts as not scheduled. [ExplainDelete] names the rule that
// decided. [BeforeDelete] also handles repeated deletes.
func ForDelete(pod *v1.Pod, options *metav1.DeleteOptions) (seconds int64, graceful bool) {
	return forDelete(nil, pod, options), options != nil // nil: no explanation is needed
}

// DeleteSeconds returns the result of [ForDelete] for other types of pods, such as the internal
// type of an API server. spec is spec.terminationGracePeriodSeconds and requested is
// options.gracePeriodSeconds, both in seconds, or nil. scheduled means that spec.nodeName is
// set, and terminated means that status.phase is Failed or Succeeded.
//
// seconds is never negative. graceful is always true, which is what CheckGracefulDelete
// returns for non-nil options.
func DeleteSeconds(spec, requested *int64, scheduled, terminated bool) (seconds int64, graceful bool) {
	return deleteSeconds(nil, spec, requested, scheduled, terminated), true // nil: no explanation is needed
}

// ExplainDelete explains the result of [ForDelete].
func ExplainDelete(pod *v1.Pod, options *metav1.DeleteOptions) Explanation {
	var t trace
	return Explanation{Seconds: forDelete(&t, pod, options), steps: t.steps}
}

// forDelete computes the result of ForDelete: 0 without options, else that of deleteSeconds.
// t.applies records a rule for ExplainDelete and returns its last argument, whether the rule
// applies. A nil t records nothing.
func forDelete(t *trace, pod *v1.Pod, options *metav1.DeleteOptions) int64 {
	if t.applies(ruleNoOptions, "options", 0, options == nil) {
		return 0
	}
	scheduled := pod != nil && pod.Spec.NodeName != ""
	return deleteSeconds(t, specGrace(pod), options.GracePeriodSeconds, scheduled, finished(pod))
}

// deleteSeconds computes the result of DeleteSeconds. Each rule that applies replaces the result
// of the rules before it. t.applies records a rule for ExplainDelete and returns its last argument,
// whether the rule applies. A nil t records nothing.
func deleteSeconds(t *trace, spec, requested *int64, scheduled, terminated bool) int64 {
	seconds := requestedSeconds(t, spec, requested)
	if t.applies(ruleUnscheduled, "spec.nodeName", 0, !scheduled) {
		seconds = 0
	}
	if t.applies(ruleFinished, "status.phase", 0, terminated) {
		seconds = 0
	}
	if t.applies(ruleNegative, noField, minimumGracefulSeconds, seconds < 0) {
		seconds = minimumGracefulSeconds
	}
	return seconds
}

// requestedSeconds returns the grace period of the delete options, else that of the pod's
// spec, else 0. t.appliesOptional records a rule for ExplainDelete and returns its last argument,
// whether the rule applies. A nil t records nothing.
func requestedSeconds(t *trace, spec, requested *int64) int64 {
	if t.appliesOptional(ruleOptions, "options.gracePeriodSeconds", requested, requested != nil) {
		return *requested
	}
	if t.appliesOptional(ruleSpec, fieldSpecGrace, spec, spec != nil) {
		return *spec
	}
	t.note(ruleNoGrace, noField, 0)
	return 0
}

// finished reports whether all containers of the pod have ended for good, according to its
// phase.
func finished(pod *v1.Pod) bool {
	return pod != nil && (pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded)
}

// PodDeleteStrategy computes the grace period of *v1.Pod for rest.BeforeDelete of
// k8s.io/apiserver. For the internal types of k8s.io/kubernetes use [DeleteSeconds]. Embed
// it together with a runtime.ObjectTyper:
//
//	type strategy struct {
//		runtime.ObjectTyper // scheme.Scheme of client-go
//		graceperiod.PodDeleteStrategy
//	}
//
// The zero value is ready to use. It may be used concurrently.
type PodDeleteStrategy struct{}

// CheckGracefulDelete implements rest.RESTGracefulDeleteStrategy. It sets
// options.GracePeriodSeconds to the result of [ForDelete] and reports whether the delete
// is graceful. If options is nil, or obj is not a *v1.Pod, it changes nothing and returns
// false.
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
