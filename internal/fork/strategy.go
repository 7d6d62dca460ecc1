package fork

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// podStrategy is the API server's strategy for pods.
type podStrategy struct{}

// CheckGracefulDelete writes the grace period of a delete into its options and reports
// whether the delete is graceful.
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
