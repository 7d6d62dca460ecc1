package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

// sandboxTimeout bounds the stop of a pod's sandbox. The pod counts as running until then.
const sandboxTimeout = 5 * time.Second

// killer is a [shutdown.PodKiller]. It stops the containers of a pod with package podkiller and then the pod's
// sandbox, which releases its network. It records begin and end in kills, for the view.
type killer struct {
	kills      *kills
	runtime    Runtime
	containers shutdown.PodKiller
}

// KillPod stops the containers of a pod and then its sandbox. A sandbox that cannot be stopped is only logged,
// because the pod's containers have ended.
func (k killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	k.kills.begin(pod, *req.GracePeriodSeconds)
	result, err := k.containers.KillPod(ctx, pod, req)
	if err != nil && ctx.Err() != nil {
		return result, err // only this wait has ended: the stop goes on, and is not recorded as ended
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
