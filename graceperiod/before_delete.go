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

// BeforeDelete does to pod and options what an API server does at the time now,
// before it deletes a pod: rest.BeforeDelete with the strategy of pods.
//
//   - graceful: the pod was given a deletionTimestamp and a grace, or an earlier
//     and shorter one; store it and leave the rest to its node.
//   - pending: the pod is being deleted already, and nothing shorter was asked for.
//   - neither: delete it from the store at once.
//
// A first delete stores the grace of [ForDelete], the end of it, and one more
// generation if the pod has one. A repeated delete may only shorten: the end moves
// by the difference, but not before now, where the grace becomes 1 unless 0 was
// asked for. A pod with a deletionTimestamp but no grace, or 0, was deleted before
// and its deletion got stuck. Negative graces, stored and asked for, become 1.
// Ends past the years of a time.Duration saturate as [Duration] does.
//
// Nil options ask for 0, as for the API server's store. An error leaves pod and
// options as they are: Invalid for options that contradict themselves, Conflict
// for a precondition on UID or resourceVersion that does not hold, InternalError
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
	options.GracePeriodSeconds = notNegative(options.GracePeriodSeconds)
	pod.DeletionGracePeriodSeconds = notNegative(pod.DeletionGracePeriodSeconds)
	if pod.DeletionTimestamp != nil {
		graceful, pending = deleteAgain(pod, options, now)
		return graceful, pending, nil
	}
	deleteFirst(pod, options, now)
	return true, false, nil
}

// checkDelete refuses options that are no good for any pod, and those that were
// meant for another pod or another version of it.
func checkDelete(pod *v1.Pod, options *metav1.DeleteOptions) error {
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	wanted := options.Preconditions
	if wanted == nil {
		return nil
	}
	if wanted.UID != nil && *wanted.UID != pod.UID {
		return conflict(pod, "UID", string(*wanted.UID), string(pod.UID), "deleted and then recreated")
	}
	if wanted.ResourceVersion != nil && *wanted.ResourceVersion != pod.ResourceVersion {
		return conflict(pod, "ResourceVersion", *wanted.ResourceVersion, pod.ResourceVersion, "modified")
	}
	return nil
}

// conflict is the API server's error for a precondition, in its words.
func conflict(pod *v1.Pod, what, wanted, found, suspicion string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, pod.Name, fmt.Errorf(
		"the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s",
		what, wanted, what, found, suspicion))
}

// notNegative is seconds, or the API server's 1 if they are negative.
func notNegative(seconds *int64) *int64 {
	if seconds != nil && *seconds < 0 {
		least := minimumGracefulSeconds
		return &least
	}
	return seconds
}

// deleteFirst begins the pod's deletion.
func deleteFirst(pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) {
	seconds, _ := ForDelete(pod, options)
	asked, stored, end := seconds, seconds, metav1.NewTime(now.Add(Duration(seconds)))
	options.GracePeriodSeconds, pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp = &asked, &stored, &end
	if pod.Generation > 0 {
		pod.Generation++
	}
}

// deleteAgain shortens the deletion of a pod that is being deleted, if the options
// ask for less. Both graces are 0 or more, or nil.
func deleteAgain(pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) (graceful, pending bool) {
	stored := pod.DeletionGracePeriodSeconds
	switch wish := options.GracePeriodSeconds; {
	case stored == nil || *stored == 0:
		return false, false
	case wish == nil:
		seconds := *stored
		options.GracePeriodSeconds = &seconds
		return false, true
	case *wish >= *stored:
		return false, true
	default:
		shortenDeletion(pod, *wish, *stored, now)
		return true, false
	}
}

// shortenDeletion brings the end of the pod's deletion forward by the difference
// of its two graces, but not into the past: a pod whose end has come still needs an
// update that its node can see, hence 1 and not 0 unless 0 was asked for.
func shortenDeletion(pod *v1.Pod, wish, stored int64, now time.Time) {
	end := metav1.NewTime(pod.DeletionTimestamp.Add(Duration(wish - stored)))
	if end.Time.Before(now) {
		end = metav1.NewTime(now)
		wish = min(wish, minimumGracefulSeconds)
	}
	pod.DeletionTimestamp = &end
	pod.DeletionGracePeriodSeconds = &wish
}
