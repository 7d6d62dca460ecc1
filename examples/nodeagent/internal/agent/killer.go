package agent

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// killer lets the manager kill pods with a terminator. SetStatus of a request is
// not called: the agent has no API server to report a status to.
type killer struct {
	pods       *pods
	terminator *lifecycle.Terminator
	runtime    podruntime.Runtime
}

// KillPod stops the containers of a pod and then removes what is left of it. A
// pod that is just being started is stopped with what of it runs already.
func (k killer) KillPod(ctx context.Context, spec *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	p := k.pods.find(spec.UID)
	if p == nil {
		return shutdown.KillResult{}, fmt.Errorf("pod %s/%s is not one of this node", spec.Namespace, spec.Name)
	}
	p.tell(req.GracePeriodSeconds)
	result, err := k.kill(ctx, p, req.GracePeriodSeconds)
	p.end(err)
	return shutdown.KillResult{Outcome: string(result.Outcome())}, err
}

func (k killer) kill(ctx context.Context, p *pod, seconds int64) (lifecycle.Result, error) {
	select {
	case <-p.settled:
	case <-ctx.Done():
		return lifecycle.Result{}, fmt.Errorf("its start did not end: %w", context.Cause(ctx))
	}
	req := lifecycle.Request{GracePeriodSeconds: &seconds, Containers: p.running()}
	p.terminate(k.terminator.Terminate(ctx, p.spec, req))
	result, err := k.terminator.KillPod(ctx, p.spec, req) // joins it
	if ctx.Err() != nil {
		return result, err // its containers are not to be removed under its hands
	}
	if stopErr := k.runtime.StopPod(ctx, p.spec); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("failed to remove what is left of it: %w", stopErr))
	}
	return result, err
}
