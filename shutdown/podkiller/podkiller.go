package podkiller

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Options configure a killer. The zero value is sufficient if the terminator's runtime can list
// what runs and nobody needs exit codes.
//
// Both functions may be called concurrently, also for the same pod. Their ctx is that of
// the kill. Their results are not modified.
type Options struct {
	// Containers is for runtimes that cannot list, and must be nil for others. It returns exactly
	// the containers of a pod that run ([lifecycle.Request.Containers]). It is called once for each
	// kill, before any container is stopped. No containers and no error: nothing of the pod runs. An
	// error is that of the kill, which a [shutdown.Manager] tries again. nil: the runtime is asked.
	Containers func(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error)
	// Status returns the status of a pod whose containers have all ended, with their exit codes. If
	// it is nil or returns nil, KillPod returns no final status.
	Status func(ctx context.Context, pod *v1.Pod) *v1.PodStatus
}

// New returns a [shutdown.PodKiller] that stops pods with the terminator: the containers that its
// runtime lists, or those of [Options.Containers]. A second kill of a pod joins the termination that
// is under way and may shorten it; containers that could not be stopped are stopped again.
//
// The outcome is that of [lifecycle.Result.Outcome]. The final status is that of
// [Options.Status] after all containers have ended, modified by the SetStatus of the
// request. When the pod is gone, the agent must call [lifecycle.Terminator.Forget].
//
// For a nil terminator New returns nil, which [shutdown.NewManager] and [Timed] refuse.
func New(t *lifecycle.Terminator, opts Options) shutdown.PodKiller {
	if t == nil {
		return nil
	}
	return &killer{terminator: t, opts: opts}
}

type killer struct {
	terminator *lifecycle.Terminator
	opts       Options
}

// KillPod implements [shutdown.PodKiller]. The end of ctx ends the waiting, not the
// termination. After the terminator was closed, the error wraps [shutdown.ErrNoRetry].
func (k *killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if pod == nil {
		return shutdown.KillResult{}, errNoPod
	}
	stop := lifecycle.Request{GracePeriodSeconds: req.GracePeriodSeconds}
	if k.opts.Containers != nil {
		running, err := k.opts.Containers(ctx, pod)
		if err != nil {
			return shutdown.KillResult{}, fmt.Errorf("failed to get the containers of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		seconds, _ := graceperiod.ForPod(pod, 0, req.GracePeriodSeconds) // as where the runtime is asked
		stop.GracePeriodSeconds, stop.Containers = &seconds, append([]lifecycle.Container{}, running...)
	}
	result, err := k.terminator.KillPod(ctx, pod, stop)
	kill := shutdown.KillResult{Outcome: string(result.Outcome())}
	if errors.Is(err, lifecycle.ErrClosed) {
		err = fmt.Errorf("%w: %w", shutdown.ErrNoRetry, err)
	}
	if err != nil || k.opts.Status == nil {
		return kill, err
	}
	if kill.Status = k.opts.Status(ctx, pod).DeepCopy(); kill.Status != nil && req.SetStatus != nil {
		req.SetStatus(kill.Status)
	}
	return kill, nil
}
