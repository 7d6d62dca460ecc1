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

package lifecycle

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// podStatus gets the status of a pod from the runtime, with the kubelet's error texts.
func podStatus(ctx context.Context, pods podStatusProvider, pod *v1.Pod) (*kubecontainer.PodStatus, error) {
	running, err := pods.GetPod(ctx, pod.UID)
	if err != nil {
		return nil, fmt.Errorf("unable to get pod, event handlers may be invalid: %w", err)
	}
	status, err := pods.GetPodStatus(ctx, running)
	if err != nil {
		return nil, fmt.Errorf("unable to get pod status, event handlers may be invalid: %w", err)
	}
	return status, nil
}
