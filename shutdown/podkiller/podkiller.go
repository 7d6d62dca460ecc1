package podkiller

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Options says what a killer works with. The zero value is enough where the pods that
// it is given have a status that is true.
type Options struct {
	// Status gives the status of a pod as it is now: which containers run, and with
	// which exit codes others have ended. It is asked before a kill and after it, and is
	// not changed. Nil, or a nil status: that of the pod, and no final status is given.
	Status func(*v1.Pod) *v1.PodStatus
}

// New makes a killer of a terminator. The containers that it stops are those that run
// in the pod's status, and those that the terminator's Start has started; a pod of
// which that is not known gives an error that wraps [lifecycle.ErrUnknownContainers].
// It may be called again for a pod: what is under way is joined, and shortened, and what
// got stuck is asked for again.
//
// The outcome is that of [lifecycle.Result.Outcome]. The status is given once all
// containers have ended, with that of the request written into it. The agent forgets the
// pod ([lifecycle.Terminator.Forget]) when it is gone.
func New(t *lifecycle.Terminator, opts Options) shutdown.PodKiller {
	return &killer{terminator: t, status: opts.Status}
}

type killer struct {
	terminator *lifecycle.Terminator
	status     func(*v1.Pod) *v1.PodStatus
}

// KillPod implements [shutdown.PodKiller]. ctx bounds the waiting only.
func (k *killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if status := k.statusOf(pod); status != nil {
		now := *pod
		now.Status = *status
		pod = &now
	}
	result, err := k.terminator.KillPod(ctx, pod, lifecycle.Request{GracePeriodSeconds: &req.GracePeriodSeconds})
	kill := shutdown.KillResult{Outcome: string(result.Outcome())}
	if err != nil {
		return kill, err
	}
	if kill.Status = k.statusOf(pod); kill.Status != nil && req.SetStatus != nil {
		req.SetStatus(kill.Status)
	}
	return kill, nil
}

// statusOf is a copy of a pod's status, nil if nobody tells.
func (k *killer) statusOf(pod *v1.Pod) *v1.PodStatus {
	if k.status == nil || pod == nil {
		return nil
	}
	return k.status(pod).DeepCopy()
}
