package virtualkubelet

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// KillPod makes a Provider a [shutdown.PodKiller]: it begins or hurries the same
// termination as [Provider.DeletePod], with the grace of the request, and waits for
// its end. The final status, which virtual-kubelet is told as well, is that after
// SetStatus of the last request; the pod itself is kept until it is deleted.
//
// ctx bounds the waiting only: when it ends, the error is a
// [*lifecycle.StillRunningError], and the termination goes on. An unknown pod is an
// error of the kind errdefs.ErrNotFound; containers that cannot be stopped give that of
// [lifecycle.Result.Err], wrapped.
func (p *Provider) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	r := p.mark(pod, req.SetStatus)
	if r == nil {
		return shutdown.KillResult{}, notFound(pod.Namespace, pod.Name)
	}
	t, err := p.terminate(ctx, r, p.view(r), &req.GracePeriodSeconds)
	if err != nil {
		return shutdown.KillResult{}, err
	}
	err = p.awaitEnd(ctx, r, t)
	result := shutdown.KillResult{Outcome: string(t.Result().Outcome())}
	p.mu.Lock()
	result.Status = r.final.DeepCopy()
	p.mu.Unlock()
	if result.Status != nil && req.SetStatus != nil {
		req.SetStatus(result.Status) // of no effect, unless the pod had ended before
	}
	return result, err
}

// mark notes how the final status is to be written.
func (p *Provider) mark(pod *v1.Pod, set func(*v1.PodStatus)) *record {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.pods[keyOf(pod)]
	if r != nil && set != nil {
		r.setStatus = set
	}
	return r
}

// awaitEnd waits until the status of a pod is final, or cannot become so.
func (p *Provider) awaitEnd(ctx context.Context, r *record, t *lifecycle.Termination) error {
	select {
	case <-r.ended:
		return nil
	case <-r.concluded:
	case <-ctx.Done():
		_, err := t.Wait(ctx) // which names what still runs
		return err
	}
	if result := t.Result(); result.Outcome() == lifecycle.LeftRunning {
		return result.Err()
	}
	if err := p.again(r); err != nil {
		return err
	}
	select { // its start, or the status, may end a moment after the termination
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("failed to learn how pod %s has ended: %w", r.name, context.Cause(ctx))
	}
}
