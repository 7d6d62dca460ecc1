// Package kubelet stands in for the kubelet's package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// Kubelet stands in for the kubelet's type of this name, with the only field that kubegrace_pod_workers.go uses.
type Kubelet struct{ containerRuntime kubecontainer.Runtime }

// podSyncer stands in for the kubelet's interface that the pod workers call. Its methods are not used here.
type podSyncer any

// KillPodOptions are the options of a kill.
type KillPodOptions struct {
	CompletedCh                              chan<- struct{}
	Evict                                    bool
	PodStatusFunc                            PodStatusFunc
	PodTerminationGracePeriodSecondsOverride *int64
}

// PodStatusFunc changes the status of a pod that was killed.
type PodStatusFunc func(podStatus *v1.PodStatus)

// UpdatePodOptions is an update for the pod workers.
type UpdatePodOptions struct {
	UpdateType     kubetypes.SyncPodType
	Pod            *v1.Pod
	KillPodOptions *KillPodOptions
}

// PodWorkers is the part of the pod workers that kills pods.
type PodWorkers interface {
	UpdatePod(ctx context.Context, options UpdatePodOptions)
}

// podSyncStatus is the state of a pod in the pod workers.
type podSyncStatus struct{ gracePeriod int64 }

// calculateEffectiveGracePeriod returns the grace period of a pod and whether it was shortened. If the feature gate
// of kubegrace is off, a kubelet runs its own code instead. This module lacks that code, and returns 0 and false.
func calculateEffectiveGracePeriod(status *podSyncStatus, pod *v1.Pod, options *KillPodOptions) (int64, bool) {
	if kubegraceEnabled() {
		return kubegraceEffectiveGracePeriod(status, pod, options)
	}
	return 0, false
}

// killPodNow returns the function with which evictions and the shutdown manager kill pods. If the feature gate of
// kubegrace is off, a kubelet runs its own code instead. This module lacks that code, and returns nil.
func killPodNow(ctx context.Context, podWorkers PodWorkers, recorder record.EventRecorder) eviction.KillPodFunc {
	if kubegraceEnabled() {
		return kubegraceKillPodNow(func(options UpdatePodOptions) { podWorkers.UpdatePod(ctx, options) }, recorder)
	}
	return nil
}
