package graceperiod

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BeforeDelete updates pod and options as an API server does before it deletes a pod at
// the time now (rest.BeforeDelete with the strategy of pods). It returns
//
//   - graceful if it set, or shortened, the pod's deletionTimestamp and
//     deletionGracePeriodSeconds: store the pod, and let its node terminate it;
//   - pending if the pod is already being deleted and no shorter grace period was
//     requested: do nothing;
//   - neither if the pod must be removed from the store now.
//
// The first delete sets the grace period of [ForDelete] and the time at which it ends,
// and increments the generation if the pod has one.
//
// A repeated delete can only shorten the grace period. It moves the deletionTimestamp
// earlier by the difference. If that would be before now, the deletionTimestamp becomes now
// and the grace period 1, or 0 if 0 was requested. A pod whose deletionTimestamp is set and
// whose grace period is nil or 0 must be removed.
//
// Negative grace periods, stored or requested, become 1. The deletionTimestamp saturates as
// in [Duration]. Nil options request 0.
//
// On an error, pod and options are unchanged. The errors are Invalid for contradictory
// options, Conflict for an unmet precondition on UID or resourceVersion, and InternalError
// for a nil pod.
func BeforeDelete(pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) (graceful, pending bool, err error) {
	if pod == nil {
		return false, false, apierrors.NewInternalError(errors.New("pod must not be nil"))
	}
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	if err := checkDelete(pod, options); err != nil {
		return false, false, err
	}
	options.GracePeriodSeconds = replaceNegative(options.GracePeriodSeconds)
	pod.DeletionGracePeriodSeconds = replaceNegative(pod.DeletionGracePeriodSeconds)
	if pod.DeletionTimestamp != nil {
		graceful, pending = deleteAgain(pod, options, now)
		return graceful, pending, nil
	}
	deleteFirst(pod, options, now)
	return true, false, nil
}

// checkDelete returns an error if the options are invalid or the pod does not meet their
// preconditions.
func checkDelete(pod *v1.Pod, options *metav1.DeleteOptions) error {
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	required := options.Preconditions
	if required == nil {
		return nil
	}
	if required.UID != nil && *required.UID != pod.UID {
		return conflict(pod, "UID", string(*required.UID), string(pod.UID), "deleted and then recreated")
	}
	if required.ResourceVersion != nil && *required.ResourceVersion != pod.ResourceVersion {
		return conflict(pod, "ResourceVersion", *required.ResourceVersion, pod.ResourceVersion, "modified")
	}
	return nil
}

// conflict returns the API server's error for an unmet precondition on field.
func conflict(pod *v1.Pod, field, required, found, suspicion string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, pod.Name, fmt.Errorf(
		"the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s",
		field, required, field, found, suspicion))
}

// replaceNegative returns seconds, or [minimumGracefulSeconds] if seconds is negative.
func replaceNegative(seconds *int64) *int64 {
	if seconds != nil && *seconds < 0 {
		minimum := minimumGracefulSeconds
		return &minimum
	}
	return seconds
}

// deleteFirst handles the first delete of a pod: it sets the grace period, in the pod and in the
// options, and the deletionTimestamp, at which the grace period ends.
func deleteFirst(pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) {
	stored, _ := ForDelete(pod, options)
	requested := stored // a copy, so that a later change of the options does not change the pod
	end := metav1.NewTime(now.Add(Duration(stored)))
	options.GracePeriodSeconds, pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp = &requested, &stored, &end
	if pod.Generation > 0 { // pods have no generation before Kubernetes v1.33
		pod.Generation++
	}
}

// deleteAgain shortens the grace period of a pod that is being deleted, if the options
// request less. Neither grace period may be negative. The results mean the same as in
// [BeforeDelete]: the grace period was shortened (graceful), there is nothing to do (pending), or
// the pod must be removed now (neither).
func deleteAgain(pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) (graceful, pending bool) {
	stored := pod.DeletionGracePeriodSeconds
	switch requested := options.GracePeriodSeconds; {
	case stored == nil || *stored == 0: // the pod must be removed now
		return false, false
	case requested == nil: // nothing to do, except that the options get the stored one, as in an API server
		seconds := *stored
		options.GracePeriodSeconds = &seconds
		return false, true
	case *requested >= *stored:
		return false, true
	default:
		shortenDeletion(pod, *requested, *stored, now)
		return true, false
	}
}

// shortenDeletion shortens the stored grace period of a pod to the requested one, and moves the
// deletionTimestamp earlier by the difference, but not before now. If the requested grace period has
// already ended, it becomes 1 unless 0 was requested: 0 would remove the pod before its node sees
// the update.
func shortenDeletion(pod *v1.Pod, requested, stored int64, now time.Time) {
	end := metav1.NewTime(pod.DeletionTimestamp.Add(Duration(requested - stored)))
	if end.Time.Before(now) {
		end = metav1.NewTime(now)
		requested = min(requested, minimumGracefulSeconds)
	}
	pod.DeletionTimestamp = &end
	pod.DeletionGracePeriodSeconds = &requested
}
