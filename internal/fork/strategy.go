package fork

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// podStrategy is that of the API server's pods.
type podStrategy struct{}

// CheckGracefulDelete writes the grace of a delete into its options.
func (podStrategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	pod := obj.(*apiPod)
	terminated := pod.Status.Phase == apiPodFailed || pod.Status.Phase == apiPodSucceeded
	seconds, graceful := graceperiod.DeleteSeconds(pod.Spec.TerminationGracePeriodSeconds, options.GracePeriodSeconds, pod.Spec.NodeName != "", terminated)
	options.GracePeriodSeconds = &seconds
	return graceful
}
