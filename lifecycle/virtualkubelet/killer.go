package virtualkubelet

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// KillPod implements [shutdown.PodKiller]. It begins or shortens the same termination as [Provider.DeletePod], with the grace
// period of the request, and waits for its end. SetStatus of the request modifies the pod's final status, both in the result
// of KillPod and in what virtual-kubelet gets; of several calls with a SetStatus the newest counts. The provider keeps the
// pod until virtual-kubelet deletes it.
//
// ctx bounds only the waiting: when it ends, the error wraps its cause and the termination continues. If containers cannot be
// stopped, the error is [lifecycle.Result.Err]. After [Provider.Close] the error wraps [shutdown.ErrNoRetry].
//
// If the provider does not know the pod and nothing of it runs, the result is [lifecycle.OutcomeNotFound] without an error.
// If its containers run, because it was not adopted, the error is an errdefs.ErrNotFound.
func (p *Provider) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if err := p.check(pod); err != nil {
		return shutdown.KillResult{}, err
	}
	p.poller.start(ctx)
	if err := p.poller.awaitFirstList(ctx); err != nil {
		return shutdown.KillResult{}, noRetry(err)
	}
	known := p.pods.find(pod)
	if known == nil || !known.addKill(req.SetStatus) {
		return p.killUnknown(ctx, pod)
	}
	defer known.removeKill()
	termination, err := known.terminate(ctx, known.podWithStatus(), req.GracePeriodSeconds)
	if err != nil {
		return shutdown.KillResult{}, noRetry(err)
	}
	result, err := termination.Wait(ctx)
	kill := shutdown.KillResult{Outcome: string(result.Outcome())}
	if err != nil {
		return kill, noRetry(err)
	}
	kill.Status = known.awaitFinal(ctx).DeepCopy()
	return kill, nil
}

// killUnknown returns the result of KillPod for a pod that the provider does not know. If nothing of it runs, it has ended:
// perhaps it was forgotten after the caller had listed it. A PodRuntime has listed all pods, a Runtime is asked. A pod that
// runs was not adopted: the provider cannot stop it, and the error is an errdefs.ErrNotFound.
func (p *Provider) killUnknown(ctx context.Context, pod *v1.Pod) (shutdown.KillResult, error) {
	leave, isOpen := p.calls.EnterIfOpen(func() string { return "KillPod of " + nameOf(pod).String() })
	if !isOpen {
		return shutdown.KillResult{}, noRetry(fmt.Errorf("failed to terminate pod %s: %w", nameOf(pod), lifecycle.ErrClosed))
	}
	defer leave()
	notFound := shutdown.KillResult{Outcome: string(lifecycle.OutcomeNotFound)}
	if p.opts.Pods != nil {
		return notFound, nil
	}
	c := caller{name: nameOf(pod), calls: &p.calls}
	err := c.callWithin(ctx, "Running", callTimeout, func(ctx context.Context) error {
		running, err := p.opts.Runtime.Running(ctx, pod.DeepCopy())
		if err == nil && len(running) > 0 {
			err = newNotFoundError(pod.Namespace, pod.Name)
		}
		return err
	})
	if err != nil {
		return shutdown.KillResult{}, err
	}
	return notFound, nil
}

// noRetry wraps the error of a closed provider with [shutdown.ErrNoRetry], because another KillPod would fail too. It
// returns other errors unchanged.
func noRetry(err error) error {
	if errors.Is(err, lifecycle.ErrClosed) {
		return fmt.Errorf("%w: %w", shutdown.ErrNoRetry, err)
	}
	return err
}

// Pods returns copies of the pods that have not ended, sorted by namespace and name, for ListPods of
// shutdown.Options. A pod is listed before [Options.Admit] is called for it, so that a shutdown either
// finds the pod here or refuses it. Pods fails until a [PodRuntime] has listed its pods.
func (p *Provider) Pods(ctx context.Context) ([]*v1.Pod, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	p.poller.start(ctx)
	if !p.poller.hasListed() {
		return nil, errNotListed
	}
	known := p.pods.all()
	pods := make([]*v1.Pod, 0, len(known))
	for _, m := range known {
		if m.finalStatus() == nil {
			pods = append(pods, m.podWithStatus())
		}
	}
	return pods, nil
}

// addKill registers a call of KillPod, so that the pod is not forgotten before the call has its result. setStatus,
// if not nil, will modify the final status. The result is false if the pod was forgotten already.
func (m *managedPod) addKill(setStatus func(*v1.PodStatus)) (added bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending.forgotten {
		return false
	}
	m.ending.kills++
	if setStatus != nil {
		m.ending.setStatus = setStatus
	}
	return true
}

// removeKill records that a KillPod returns. After the last one the pod may be forgotten.
func (m *managedPod) removeKill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ending.kills--
	m.wakeSender() // the pod may now be forgotten
}

// awaitFinal waits for the final status. It may come a little later than the end of the termination, because a
// StartContainer or ContainerEnded in progress must return first. awaitFinal returns nil if ctx ends before that.
func (m *managedPod) awaitFinal(ctx context.Context) *v1.PodStatus {
	select {
	case <-m.ended:
		return m.finalStatus()
	case <-ctx.Done():
		return nil
	}
}
