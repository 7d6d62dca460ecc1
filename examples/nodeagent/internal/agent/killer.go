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
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// statusTimeout bounds the reading of the final states of a pod's containers.
const statusTimeout = 2 * time.Second

// killer implements [shutdown.PodKiller]. Package podkiller stops the containers; the
// killer handles a start that is under way, and the sandbox.
type killer struct {
	pods    *pods
	runtime podruntime.Runtime
	stop    shutdown.PodKiller
}

// newKiller returns a killer that stops containers with the terminator. It returns final
// statuses only if reports is true, that is, if there is an API server.
func newKiller(pods *pods, runtime podruntime.Runtime, terminator *lifecycle.Terminator, reports bool) killer {
	k := killer{pods: pods, runtime: runtime}
	opts := podkiller.Options{Containers: k.containers}
	if reports {
		opts.Status = k.status
	}
	k.stop = podkiller.New(terminator, opts)
	return k
}

// KillPod stops the containers of a pod and then removes its sandbox. If the pod is being
// started, the containers that run already are stopped.
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

// hasten shortens the stop of a pod. The record of when the pod was told to stop, and of
// the grace period it was granted, stays as it is.
func (k killer) hasten(ctx context.Context, p *pod, req shutdown.KillRequest) error {
	_, err := k.kill(ctx, p, req)
	p.end(err)
	return err
}

func (k killer) kill(ctx context.Context, p *pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	select {
	case <-p.settled:
	case <-ctx.Done():
		return shutdown.KillResult{}, fmt.Errorf("its start did not end: %w", context.Cause(ctx))
	}
	result, err := k.stop.KillPod(ctx, p.spec, req)
	if ctx.Err() != nil {
		return result, err // podkiller may still be stopping the containers
	}
	if stopErr := k.runtime.StopPod(ctx, p.spec); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("failed to remove what is left of it: %w", stopErr))
	}
	return result, err
}

// containers returns the containers that the start of the pod has left running.
func (k killer) containers(_ context.Context, spec *v1.Pod) []lifecycle.Container {
	return k.pods.find(spec.UID).running()
}

// status returns the final status of a pod: that of a pod that ended by itself, or that
// of a running pod, which the request then makes a terminated one. It is read before the
// runtime forgets the containers.
func (k killer) status(ctx context.Context, spec *v1.Pod) *v1.PodStatus {
	p := k.pods.find(spec.UID)
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := statusOf(ctx, k.runtime, p)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to learn how a pod has ended, its final status says less", "pod", klog.KObj(spec))
	}
	if !p.endedByItself() {
		status.Phase = v1.PodRunning
	}
	return status
}
