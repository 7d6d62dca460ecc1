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

// BeforeDelete changes pod and options as an API server does before it deletes a pod at
// the time now (rest.BeforeDelete with the strategy of pods). It returns
//
//   - graceful if it gave the pod a deletionTimestamp and a
//     deletionGracePeriodSeconds, or an earlier and shorter one: store the pod, and
//     leave its termination to its node;
//   - pending if the pod is being deleted already and nothing shorter was requested:
//     there is nothing to do;
//   - neither if the pod is to be deleted from the store at once.
//
// A first delete sets the grace period of [ForDelete] and the time at which it ends,
// and increments the generation if the pod has one. A repeated delete can only shorten
// the grace period. It moves the deletionTimestamp by the difference, but not before
// now; there the grace period becomes 1, or 0 if 0 was requested. A pod with a
// deletionTimestamp whose grace period is nil or 0 should have left the store already,
// and gets neither. Negative grace periods, stored or requested, become 1. The
// deletionTimestamp saturates as [Duration] does.
//
// Nil options request 0, as for the API server's store. An error leaves pod and
// options unchanged: Invalid for options that contradict themselves, Conflict if a
// precondition on UID or resourceVersion does not hold, InternalError for a nil pod.
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
	options.GracePeriodSeconds = notNegative(options.GracePeriodSeconds)
	pod.DeletionGracePeriodSeconds = notNegative(pod.DeletionGracePeriodSeconds)
	if pod.DeletionTimestamp != nil {
		graceful, pending = deleteAgain(pod, options, now)
		return graceful, pending, nil
	}
	deleteFirst(pod, options, now)
	return true, false, nil
}

// checkDelete returns an error for options that are invalid, or whose preconditions the
// pod does not meet.
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

// conflict returns the API server's error for a field whose precondition does not hold.
func conflict(pod *v1.Pod, field, required, found, suspicion string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, pod.Name, fmt.Errorf(
		"the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s",
		field, required, field, found, suspicion))
}

// notNegative returns seconds, or [minimumGracefulSeconds] if they are negative.
func notNegative(seconds *int64) *int64 {
	if seconds != nil && *seconds < 0 {
		minimum := minimumGracefulSeconds
		return &minimum
	}
	return seconds
}

// deleteFirst sets the grace period of a pod that is not being deleted yet.
func deleteFirst(pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) {
	seconds, _ := ForDelete(pod, options)
	requested, stored, end := seconds, seconds, metav1.NewTime(now.Add(Duration(seconds)))
	options.GracePeriodSeconds, pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp = &requested, &stored, &end
	if pod.Generation > 0 {
		pod.Generation++
	}
}

// deleteAgain shortens the grace period of a pod that is being deleted, if the options
// request less. Both grace periods are nil, or 0 or more.
func deleteAgain(pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) (graceful, pending bool) {
	stored := pod.DeletionGracePeriodSeconds
	switch requested := options.GracePeriodSeconds; {
	case stored == nil || *stored == 0:
		return false, false
	case requested == nil:
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

// shortenDeletion moves the pod's deletionTimestamp forward by the difference of the two
// grace periods, but not before now. A grace period that has ended by now becomes 1, not
// 0, unless 0 was requested: 0 would remove the pod before its node saw the update.
func shortenDeletion(pod *v1.Pod, requested, stored int64, now time.Time) {
	end := metav1.NewTime(pod.DeletionTimestamp.Add(Duration(requested - stored)))
	if end.Time.Before(now) {
		end = metav1.NewTime(now)
		requested = min(requested, minimumGracefulSeconds)
	}
	pod.DeletionTimestamp = &end
	pod.DeletionGracePeriodSeconds = &requested
}
