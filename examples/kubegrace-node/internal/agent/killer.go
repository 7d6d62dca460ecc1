package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

// sandboxTimeout bounds the stop of a sandbox, for which the end of its pod waits.
const sandboxTimeout = 5 * time.Second

// killer is a [shutdown.PodKiller] that stops the containers of a pod with package podkiller,
// releases its network, and records both.
type killer struct {
	kills      *kills
	runtime    Runtime
	containers shutdown.PodKiller
}

// KillPod stops the containers of a pod and then its sandbox. A sandbox that cannot be stopped is
// logged: the pod has ended all the same.
func (k killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	k.kills.begin(pod, *req.GracePeriodSeconds)
	result, err := k.containers.KillPod(ctx, pod, req)
	if err != nil && ctx.Err() != nil {
		return result, err // the kill goes on
	}
	if err == nil {
		sandboxCtx, cancel := context.WithTimeout(ctx, sandboxTimeout)
		defer cancel()
		if err := k.runtime.StopPodSandbox(sandboxCtx, pod); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to stop the sandbox of a pod that has ended", "pod", klog.KObj(pod))
		}
	}
	k.kills.end(pod, err)
	return result, err
}
