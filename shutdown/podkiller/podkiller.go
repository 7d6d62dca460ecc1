package podkiller

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Options configures a killer. The zero value is sufficient if the terminator's runtime lists
// running containers and no final statuses are needed.
//
// Both functions may be called concurrently, even for the same pod, with the context of the
// kill. Their results are not modified.
type Options struct {
	// Containers returns the running containers of a pod ([lifecycle.Request.Containers]), for a runtime that cannot list them.
	// For a runtime that can, it must be nil, because a container that it leaves out is not stopped. It is called once for each
	// kill, before any container is stopped. An empty result means that nothing is running. An error fails the kill, which a
	// [shutdown.Manager] then retries.
	Containers func(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error)
	// Status returns the status of a pod, with exit codes, after all its containers have ended. If
	// it is nil or returns nil, KillPod returns no final status.
	Status func(ctx context.Context, pod *v1.Pod) *v1.PodStatus
}

// New returns a [shutdown.PodKiller] that stops a pod's containers with the terminator: those
// listed by its runtime, or by [Options.Containers]. A second kill of a pod joins the pod's
// termination and may shorten it. It stops containers again that could not be stopped.
//
// The outcome is that of [lifecycle.Result.Outcome]. The final status is that of
// [Options.Status], modified by the request's SetStatus. When the pod is deleted, the agent must
// call [lifecycle.Terminator.Forget].
//
// For a nil terminator New returns nil, which is an error of [shutdown.NewManager].
func New(t *lifecycle.Terminator, opts Options) shutdown.PodKiller {
	if t == nil {
		return nil
	}
	return &killer{terminator: t, opts: opts}
}

// killer is the PodKiller that New returns.
type killer struct {
	terminator *lifecycle.Terminator
	opts       Options
}

// KillPod implements [shutdown.PodKiller]. ctx limits the wait, not the termination. If the
// terminator was closed, the error wraps [shutdown.ErrNoRetry].
func (k *killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if pod == nil {
		return shutdown.KillResult{}, errNoPod
	}
	request, err := k.request(ctx, pod, req)
	if err != nil {
		return shutdown.KillResult{}, fmt.Errorf("failed to get the containers of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	result, err := k.terminator.KillPod(ctx, pod, request)
	killed := shutdown.KillResult{Outcome: string(result.Outcome())}
	switch {
	case errors.Is(err, lifecycle.ErrClosed):
		err = fmt.Errorf("%w: %w", shutdown.ErrNoRetry, err)
	case errors.Is(err, errors.ErrUnsupported) && k.opts.Containers == nil:
		err = fmt.Errorf("podkiller.Options.Containers must be set for a runtime that cannot list: %w", err)
	}
	if err != nil || k.opts.Status == nil {
		return killed, err
	}
	err = guard(ctx, "podkiller.Options.Status", func() error {
		killed.Status = k.opts.Status(ctx, pod).DeepCopy()
		return nil
	})
	if killed.Status != nil && req.SetStatus != nil {
		req.SetStatus(killed.Status)
	}
	return killed, err
}

// request returns the terminator's request for a kill, with the containers of [Options.Containers] if it is set.
func (k *killer) request(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (lifecycle.Request, error) {
	if k.opts.Containers == nil {
		return lifecycle.Request{GracePeriodSeconds: req.GracePeriodSeconds}, nil
	}
	var running []lifecycle.Container
	err := guard(ctx, "podkiller.Options.Containers", func() (err error) {
		running, err = k.opts.Containers(ctx, pod)
		return err
	})
	// If a request has containers, the terminator uses its grace period as it is. So compute the grace period that the
	// terminator computes for a request without containers.
	seconds, _ := graceperiod.ForPod(pod, 0, req.GracePeriodSeconds)
	notNil := append([]lifecycle.Container{}, running...) // nil would mean that the runtime lists them
	return lifecycle.Request{GracePeriodSeconds: &seconds, Containers: notNil}, err
}

// guard calls f, and returns its error. It logs a panic of f, and returns it as an error.
func guard(ctx context.Context, name string, f func() error) (err error) {
	call.Guard(ctx, name, f, func(failure error) { err = failure })
	return err
}
