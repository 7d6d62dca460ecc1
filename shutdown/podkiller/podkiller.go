package podkiller

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Options says what a killer works with. The zero value is enough where the pods that
// it is given have a status that is true. The functions are called by several goroutines at
// once, for one pod and for many; ctx is that of the kill, whose end ends the waiting. What
// they give is not changed.
type Options struct {
	// Containers gives the containers of a pod that run now, from an agent that keeps a
	// list of them. It is asked once in each kill, before anything is stopped. An empty list
	// says that none runs but for those that the terminator's Start has started. A nil list
	// says that the agent does not know: they are then those of the status. A nil function is
	// one that always gives nil.
	Containers func(ctx context.Context, pod *v1.Pod) []lifecycle.Container
	// Status gives the status of a pod as it is now: which containers run, and with
	// which exit codes others have ended. It is asked before the stop, unless Containers has
	// given a list, and once all containers have ended. A nil status before the stop stands
	// for that of the pod; after it, no final status is given. A nil function is one that always
	// gives nil.
	Status func(ctx context.Context, pod *v1.Pod) *v1.PodStatus
}

// New makes a killer of a terminator. The containers that it stops are those of
// [Options.Containers], else those that run in the pod's status, and always those that the
// terminator's Start has started; a pod of which that is not known gives an error that wraps
// [lifecycle.ErrUnknownContainers]. It may be called again for a pod: what is under way is
// joined, and shortened, and what got stuck is asked for again.
//
// The outcome is that of [lifecycle.Result.Outcome]. The status is given once all
// containers have ended, with that of the request written into it. The agent forgets the
// pod ([lifecycle.Terminator.Forget]) when it is gone.
func New(t *lifecycle.Terminator, opts Options) shutdown.PodKiller {
	return &killer{terminator: t, opts: opts}
}

type killer struct {
	terminator *lifecycle.Terminator
	opts       Options
}

// KillPod implements [shutdown.PodKiller]. ctx bounds the waiting only.
func (k *killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	stop := lifecycle.Request{GracePeriodSeconds: &req.GracePeriodSeconds, Containers: k.containers(ctx, pod)}
	if stop.Containers == nil {
		if status := k.status(ctx, pod); status != nil {
			now := *pod
			now.Status = *status
			pod = &now
		}
	}
	result, err := k.terminator.KillPod(ctx, pod, stop)
	kill := shutdown.KillResult{Outcome: string(result.Outcome())}
	if err != nil {
		return kill, err
	}
	if kill.Status = k.status(ctx, pod); kill.Status != nil && req.SetStatus != nil {
		req.SetStatus(kill.Status)
	}
	return kill, nil
}

// containers are those that the agent says to run; nil: it does not say.
func (k *killer) containers(ctx context.Context, pod *v1.Pod) []lifecycle.Container {
	if k.opts.Containers == nil || pod == nil {
		return nil
	}
	return k.opts.Containers(ctx, pod)
}

// status is a copy of a pod's status, nil if nobody tells.
func (k *killer) status(ctx context.Context, pod *v1.Pod) *v1.PodStatus {
	if k.opts.Status == nil || pod == nil {
		return nil
	}
	return k.opts.Status(ctx, pod).DeepCopy()
}
