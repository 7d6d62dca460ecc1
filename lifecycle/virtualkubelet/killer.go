package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// KillPod makes a Provider a [shutdown.PodKiller]: it begins or hurries the same
// termination as [Provider.DeletePod], with the grace of the request, and waits for
// its end. The final status, which virtual-kubelet is told as well, is that after
// SetStatus of the last request; the pod itself is kept until it is deleted.
//
// ctx bounds the waiting only: when it ends, the error is a
// [*lifecycle.StillRunningError], and the termination goes on. An unknown pod is an
// error of the kind errdefs.ErrNotFound; containers that cannot be stopped give that of
// [lifecycle.Result.Err].
func (p *Provider) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	r := p.mark(pod, req.SetStatus)
	if r == nil {
		return shutdown.KillResult{}, notFound(pod.Namespace, pod.Name)
	}
	defer p.unmark(r)
	pod = p.view(r)
	if err := p.terminate(ctx, r, pod, &req.GracePeriodSeconds); err != nil {
		return shutdown.KillResult{}, err
	}
	return p.killer.KillPod(ctx, pod, req)
}

// newKiller makes what waits for the terminations of pods that are marked.
func (p *Provider) newKiller() shutdown.PodKiller {
	return podkiller.New(p.terminator, podkiller.Options{Containers: p.runningIn, Status: p.finalOf})
}

// mark notes that somebody kills a pod, which keeps it known until unmark, and how the
// final status is to be written.
func (p *Provider) mark(pod *v1.Pod, set func(*v1.PodStatus)) *record {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.pods[keyOf(pod)]
	if r == nil {
		return nil
	}
	r.kills++
	if set != nil {
		r.setStatus = set
	}
	return r
}

// unmark notes that a kill is over.
func (p *Provider) unmark(r *record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.kills--
	r.wakeLocked() // it may be that the pod is to be forgotten
}

// runningIn are the containers of a marked pod that run.
func (p *Provider) runningIn(_ context.Context, pod *v1.Pod) []lifecycle.Container {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pods[keyOf(pod)].runningLocked()
}

// finalOf is the final status of a marked pod whose containers have been stopped. Its
// start, or the news of an exit, may end a moment after that. It is nil if ctx ends
// before.
func (p *Provider) finalOf(ctx context.Context, pod *v1.Pod) *v1.PodStatus {
	p.mu.Lock()
	r := p.pods[keyOf(pod)]
	p.mu.Unlock()
	select {
	case <-r.ended:
		return r.final
	case <-ctx.Done():
		return nil
	}
}
