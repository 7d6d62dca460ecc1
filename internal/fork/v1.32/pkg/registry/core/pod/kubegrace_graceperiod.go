/*
Copyright The kubegrace Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package pod

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// CheckGracefulDelete sets the grace period of a deletion in options, and reports whether the deletion is graceful. With
// nil options it is not.
func (podStrategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	pod := obj.(*core.Pod)
	isScheduled := pod.Spec.NodeName != ""
	hasEnded := pod.Status.Phase == core.PodFailed || pod.Status.Phase == core.PodSucceeded
	seconds, graceful := graceperiod.DeleteSeconds(pod.Spec.TerminationGracePeriodSeconds, options.GracePeriodSeconds, isScheduled, hasEnded)
	options.GracePeriodSeconds = &seconds
	return graceful
}
