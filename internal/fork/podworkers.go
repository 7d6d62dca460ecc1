package fork

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// calculateEffectiveGracePeriod returns the grace period of a pod that is being killed,
// and whether it is shorter than the pod's previous one.
func calculateEffectiveGracePeriod(status *podSyncStatus, pod *v1.Pod, options *KillPodOptions) (gracePeriod int64, gracePeriodShortened bool) {
	var override *int64
	if options != nil {
		override = options.PodTerminationGracePeriodSecondsOverride
	}
	return graceperiod.ForPod(pod, status.gracePeriod, override)
}

// shortenGracePeriod is for UpdatePod, when calculateEffectiveGracePeriod returns that
// the grace period was shortened. It shortens the hook, the wait and the stop that are
// under way at once. Without it they are shortened by the next sync, as in the kubelet.
func shortenGracePeriod(terminator *lifecycle.Terminator, pod *v1.Pod, gracePeriod int64) {
	if termination, found := terminator.Pod(pod).Termination(); found {
		termination.Shorten(gracePeriod)
	}
}

// killPodNow returns the function with which evictions and the shutdown manager kill
// pods. It waits for one and a half times the grace period, at least 10 s. After that the
// kill goes on, and the error lets the shutdown manager wait for it. The kubelet's
// killPodNow has no context; pass that of the process.
func killPodNow(ctx context.Context, podWorkers PodWorkers, recorder record.EventRecorder) KillPodFunc {
	return func(pod *v1.Pod, isEvicted bool, gracePeriodOverride *int64, fn func(*v1.PodStatus)) error {
		kill := func(ctx context.Context, pod *v1.Pod, _ shutdown.KillRequest) (shutdown.KillResult, error) {
			completed := make(chan struct{})
			podWorkers.UpdatePod(UpdatePodOptions{Pod: pod, UpdateType: SyncPodKill, KillPodOptions: &KillPodOptions{
				CompletedCh:                              completed,
				Evict:                                    isEvicted,
				PodStatusFunc:                            fn,
				PodTerminationGracePeriodSecondsOverride: gracePeriodOverride,
			}})
			select {
			case <-completed:
				return shutdown.KillResult{}, nil
			case <-ctx.Done():
				return shutdown.KillResult{}, context.Cause(ctx)
			}
		}
		_, err := podkiller.Timed(shutdown.PodKillerFunc(kill), recorder).KillPod(ctx, pod, shutdown.KillRequest{GracePeriodSeconds: gracePeriodOverride})
		return err
	}
}
