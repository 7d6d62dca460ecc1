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

package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// kubegraceEnabled reports whether pods are terminated by kubegrace.
func kubegraceEnabled() bool { return kubegrace.Enabled(kubegrace.Termination) }

// kubegraceEffectiveGracePeriod replaces calculateEffectiveGracePeriod: it returns the grace period in seconds, and
// whether that is shorter than the one of a termination in progress.
func kubegraceEffectiveGracePeriod(status *podSyncStatus, pod *v1.Pod, options *KillPodOptions) (gracePeriod int64, shortened bool) {
	var override *int64
	if options != nil {
		override = options.PodTerminationGracePeriodSecondsOverride
	}
	return graceperiod.ForPod(pod, status.gracePeriod, override)
}

// kubegraceShorten applies a shortened grace period to a termination that has begun: to its hooks, to the wait for other
// containers, and to its stops. It does nothing if the gate is off, or in a test whose syncer is no Kubelet.
func kubegraceShorten(syncer podSyncer, pod *v1.Pod, gracePeriod int64) {
	kubelet, ok := syncer.(*Kubelet)
	if !ok || !kubegraceEnabled() {
		return
	}
	if runtime, ok := kubelet.containerRuntime.(interface{ ShortenGracePeriod(*v1.Pod, int64) }); ok {
		runtime.ShortenGracePeriod(pod, gracePeriod)
	}
}

// kubegraceKillPodNow replaces killPodNow, and waits as long: one and a half times the grace period, at least 10 s. After
// that the kill continues, and the error is a *podkiller.OverdueError. The shutdown manager then calls the error's Await, which
// waits for the end of the kill.
func kubegraceKillPodNow(updatePod func(UpdatePodOptions), recorder record.EventRecorder) eviction.KillPodFunc {
	return func(pod *v1.Pod, isEvicted bool, gracePeriodOverride *int64, statusFn func(*v1.PodStatus)) error {
		kill := func(_ context.Context, pod *v1.Pod, _ shutdown.KillRequest) (shutdown.KillResult, error) {
			completed := make(chan struct{})
			updatePod(UpdatePodOptions{Pod: pod, UpdateType: kubetypes.SyncPodKill, KillPodOptions: &KillPodOptions{
				CompletedCh:                              completed,
				Evict:                                    isEvicted,
				PodStatusFunc:                            statusFn,
				PodTerminationGracePeriodSecondsOverride: gracePeriodOverride,
			}})
			<-completed
			return shutdown.KillResult{}, nil
		}
		_, err := podkiller.Timed(shutdown.PodKillerFunc(kill), recorder).KillPod(context.Background(), pod, shutdown.KillRequest{GracePeriodSeconds: gracePeriodOverride})
		return err
	}
}
