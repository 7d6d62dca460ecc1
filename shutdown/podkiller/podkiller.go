package podkiller

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Options configure a killer. The zero value is sufficient if the pods that are passed to
// KillPod have an up-to-date status.
//
// Both functions may be called concurrently, also for the same pod. Their ctx is that of
// the kill. Their results are not modified.
type Options struct {
	// Containers returns the containers of a pod that run and that [lifecycle.Pod.Start]
	// has not started, such as those of the agent before a restart. Those that Start has
	// started may be listed too, with the same IDs. It is called once for each kill,
	// before any container is stopped. The containers that run by the pod's status and those of
	// Start are stopped as well, those of the status unless Complete is set. A nil function is
	// the same as one that returns nil.
	Containers func(ctx context.Context, pod *v1.Pod) []lifecycle.Container
	// Complete says that nothing runs but what Containers returns and what
	// [lifecycle.Pod.Start] has started ([lifecycle.Request.Complete]). An agent that starts
	// every container with Start, and leaves none running when it ends, sets it, and needs
	// neither lists nor statuses to stop its pods.
	Complete bool
	// Status returns the current status of a pod: which containers run, and the exit
	// codes of the others. It is called before the stop, unless Containers has returned a
	// list or Complete is set, and again when all containers have ended.
	//
	// If it returns nil before the stop, the status of the pod that was passed to KillPod
	// counts. If it returns nil after the stop, KillPod returns no final status. A nil
	// function is the same as one that returns nil.
	Status func(ctx context.Context, pod *v1.Pod) *v1.PodStatus
}

// New returns a [shutdown.PodKiller] that stops pods with the terminator.
//
// It stops the containers of [Options.Containers], those that run according to the status
// unless [Options.Complete] is set, and always those that the terminator's Start has started. The
// status is that of the pod that is passed, or of [Options.Status] if there is no list. If none
// of these tells what runs, the error wraps [lifecycle.ErrUnknownContainers]. A second kill of a
// pod joins the termination that is under way and may shorten it; containers that could
// not be stopped are stopped again.
//
// The outcome is that of [lifecycle.Result.Outcome]. The final status is that of
// [Options.Status] after all containers have ended, modified by the SetStatus of the
// request. When the pod is gone, the agent must call [lifecycle.Pod.Forget].
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
	stop := lifecycle.Request{GracePeriodSeconds: req.GracePeriodSeconds, Containers: k.containers(ctx, pod), Complete: k.opts.Complete}
	if len(stop.Containers) == 0 && !stop.Complete {
		if status := k.status(ctx, pod); status != nil {
			now := *pod
			now.Status = *status
			pod = &now
		}
	}
	result, err := k.terminator.KillPod(ctx, pod, stop)
	kill := shutdown.KillResult{Outcome: string(result.Outcome())}
	if errors.Is(err, lifecycle.AgentStopping) {
		err = fmt.Errorf("%w: %w", shutdown.ErrNoRetry, err)
	}
	if err != nil {
		return kill, err
	}
	if kill.Status = k.status(ctx, pod); kill.Status != nil && req.SetStatus != nil {
		req.SetStatus(kill.Status)
	}
	return kill, nil
}

// containers returns the containers that run according to the agent, or nil if it does
// not know.
func (k *killer) containers(ctx context.Context, pod *v1.Pod) []lifecycle.Container {
	if k.opts.Containers == nil || pod == nil {
		return nil
	}
	return k.opts.Containers(ctx, pod)
}

// status returns a copy of the pod's current status, or nil if the agent does not know
// it.
func (k *killer) status(ctx context.Context, pod *v1.Pod) *v1.PodStatus {
	if k.opts.Status == nil || pod == nil {
		return nil
	}
	return k.opts.Status(ctx, pod).DeepCopy()
}
