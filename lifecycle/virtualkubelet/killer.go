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
	r := p.agent.pods.find(pod)
	if r == nil || !r.hold(req.SetStatus) {
		return shutdown.KillResult{}, notFound(pod.Namespace, pod.Name)
	}
	defer r.release()
	pod = r.view()
	if err := r.ender.terminate(ctx, pod, &req.GracePeriodSeconds); err != nil {
		return shutdown.KillResult{}, err
	}
	return p.killer.KillPod(ctx, pod, req)
}

// killer makes what waits for the terminations of pods that are held.
func (a *agent) killer() shutdown.PodKiller {
	return podkiller.New(a.terminator, podkiller.Options{
		Containers: func(_ context.Context, pod *v1.Pod) []lifecycle.Container {
			return a.pods.find(pod).running()
		},
		Status: func(ctx context.Context, pod *v1.Pod) *v1.PodStatus {
			return a.pods.find(pod).awaitFinal(ctx)
		},
	})
}

// hold notes that somebody kills the pod, which keeps it known until release, and how
// the final status is to be written. It tells whether the pod is still known.
func (r *record) hold(set func(*v1.PodStatus)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending.forgotten {
		return false
	}
	r.ending.kills++
	if set != nil {
		r.ending.setStatus = set
	}
	return true
}

// release notes that a kill is over.
func (r *record) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending.kills--
	r.teller.wake() // it may be that the pod is to be forgotten
}

// awaitFinal gives the final status of a pod whose containers have been stopped. Its
// start, or the news of an exit, may end a moment after that. It is nil if ctx ends
// before.
func (r *record) awaitFinal(ctx context.Context) *v1.PodStatus {
	select {
	case <-r.ended:
		return r.final()
	case <-ctx.Done():
		return nil
	}
}
