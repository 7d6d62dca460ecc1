package graceperiod_test

import (
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The functions below are a handwritten version of the same rules, without nil checks,
// explanations and saturation.

// plainContainer is a handwritten ForContainer.
func plainContainer(pod *v1.Pod, container *v1.Container, reason graceperiod.KillReason) int64 {
	if pod.DeletionGracePeriodSeconds != nil {
		return *pod.DeletionGracePeriodSeconds
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		return 2
	}
	var probe *v1.Probe
	switch reason {
	case graceperiod.ReasonStartupProbe:
		probe = container.StartupProbe
	case graceperiod.ReasonLivenessProbe:
		probe = container.LivenessProbe
	default:
	}
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		return *probe.TerminationGracePeriodSeconds
	}
	return *pod.Spec.TerminationGracePeriodSeconds
}

// plainExplanation is a handwritten sentence of ExplainContainer, for a liveness probe only.
func plainExplanation(pod *v1.Pod, container *v1.Container, reason graceperiod.KillReason) string {
	const probe = "spec.containers[0].livenessProbe.terminationGracePeriodSeconds"
	deletion := "not set"
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		deletion = strconv.FormatInt(*seconds, 10)
	}
	grace := plainContainer(pod, container, reason)
	return fmt.Sprintf("The grace period is %d s because metadata.deletionGracePeriodSeconds is %s and %s is %d.",
		grace, deletion, probe, *container.LivenessProbe.TerminationGracePeriodSeconds)
}

// plainPod is a handwritten ForPod.
func plainPod(pod *v1.Pod, current int64, override *int64) int64 {
	grace, decided := current, false
	for _, requested := range []*int64{pod.DeletionGracePeriodSeconds, override} {
		if requested != nil && (grace == 0 || *requested < grace) {
			grace, decided = *requested, true
		}
	}
	if !decided && grace == 0 && pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	return max(grace, 1)
}

// plainNodeShutdown is a handwritten ForNodeShutdown.
func plainNodeShutdown(pod *v1.Pod, bucket int64) int64 {
	if spec := pod.Spec.TerminationGracePeriodSeconds; spec != nil && *spec <= bucket {
		return *spec
	}
	return bucket
}

// plainSoftEviction is a handwritten ForSoftEviction.
func plainSoftEviction(pod *v1.Pod, most int64) int64 {
	grace := most
	if spec := pod.Spec.TerminationGracePeriodSeconds; spec != nil && (most < 0 || *spec < most) {
		grace = *spec
	}
	return grace
}

// plainDelete is a handwritten ForDelete.
func plainDelete(pod *v1.Pod, options *metav1.DeleteOptions) int64 {
	var grace int64
	switch {
	case options.GracePeriodSeconds != nil:
		grace = *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded {
		grace = 0
	}
	if grace < 0 {
		grace = 1
	}
	return grace
}

// plainBeforeDelete is a handwritten BeforeDelete for the first delete of a pod.
func plainBeforeDelete(pod *v1.Pod, options *metav1.DeleteOptions, now time.Time) error {
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	options.GracePeriodSeconds = ptr.To(plainDelete(pod, options))
	end := metav1.NewTime(now.Add(time.Duration(*options.GracePeriodSeconds) * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, ptr.To(*options.GracePeriodSeconds)
	if pod.Generation > 0 {
		pod.Generation++
	}
	return nil
}

// plainRemaining is a handwritten Remaining.
func plainRemaining(seconds int64, elapsed time.Duration) int64 {
	return max(seconds-int64(elapsed.Seconds()), 2)
}

// plainKillTimeout is a handwritten KillTimeout.
func plainKillTimeout(seconds int64) time.Duration {
	return max(time.Duration(seconds+seconds/2)*time.Second, 10*time.Second)
}

// plainLeftOfDeletion is a handwritten LeftOfDeletion. It rounds down.
func plainLeftOfDeletion(pod *v1.Pod, now time.Time) int64 {
	left := int64(pod.DeletionTimestamp.Sub(now).Seconds())
	return max(min(left, *pod.DeletionGracePeriodSeconds), 1)
}
