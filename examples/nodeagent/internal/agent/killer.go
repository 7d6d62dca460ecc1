package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// statusTimeout bounds the reading of how the containers of a pod have ended.
const statusTimeout = 2 * time.Second

// killer lets the manager kill pods with a terminator.
type killer struct {
	pods       *pods
	terminator *lifecycle.Terminator
	runtime    podruntime.Runtime
	reports    bool // there is an API server to report a status to
}

// KillPod stops the containers of a pod and then removes what is left of it. A
// pod that is just being started is stopped with what of it runs already.
func (k killer) KillPod(ctx context.Context, spec *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	p := k.pods.find(spec.UID)
	if p == nil {
		return shutdown.KillResult{}, fmt.Errorf("pod %s/%s is not one of this node", spec.Namespace, spec.Name)
	}
	p.tell(req.GracePeriodSeconds)
	result, err := k.kill(ctx, p, req)
	p.end(err)
	return result, err
}

func (k killer) kill(ctx context.Context, p *pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	select {
	case <-p.settled:
	case <-ctx.Done():
		return shutdown.KillResult{}, fmt.Errorf("its start did not end: %w", context.Cause(ctx))
	}
	stop := lifecycle.Request{GracePeriodSeconds: &req.GracePeriodSeconds, Containers: p.running()}
	termination := k.terminator.Terminate(ctx, p.spec, stop)
	p.terminate(termination)
	stopped, err := termination.Wait(ctx)
	result := shutdown.KillResult{Outcome: string(stopped.Outcome()), Status: k.status(ctx, p, req)}
	if ctx.Err() != nil {
		return result, err // its containers are not to be removed under its hands
	}
	if stopErr := k.runtime.StopPod(ctx, p.spec); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("failed to remove what is left of it: %w", stopErr))
	}
	return result, err
}

// status is how the pod is in the end: as it had ended by itself, or as one that runs
// and that the request makes a terminated one. It is read before the runtime forgets
// the containers.
func (k killer) status(ctx context.Context, p *pod, req shutdown.KillRequest) *v1.PodStatus {
	if !k.reports {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := statusOf(ctx, k.runtime, p)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to learn how a pod has ended, its final status says less", "pod", klog.KObj(p.spec))
	}
	if !p.endedByItself() {
		status.Phase = v1.PodRunning
	}
	if req.SetStatus != nil {
		req.SetStatus(status)
	}
	return status
}
