package virtualkubelet

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// DeletePod begins the termination of a pod, or hurries it, and returns at once. It
// may be called again and again, from anywhere: there is one termination, its hooks
// run once, and its deadline only moves earlier (k/k#83916).
//
// The grace is the deletionGracePeriodSeconds of the pod, counted from the call, and
// no clock is asked: the kubelet's rule. Two cases differ. The deletion of a pod
// that was adopted may be older than this agent: it has what its deletionTimestamp
// leaves (graceperiod.LeftOfDeletion). And a pod that virtual-kubelet hands back
// because the API server has it no more was deleted by force: if its deletion was
// under way, 1 s is left.
//
// When all containers have ended, virtual-kubelet hears of the final status, and then
// the pod is forgotten. A pod that is not known is an error of the kind
// errdefs.ErrNotFound. Any other error says why containers could not be stopped, each
// call trying once more, or wraps [lifecycle.AgentStopping] after [Provider.Close], or
// the cause of ctx, which bounds no more than the beginning.
func (p *Provider) DeletePod(ctx context.Context, pod *v1.Pod) error {
	r := p.agent.pods.find(pod)
	if r == nil {
		return notFound(pod.Namespace, pod.Name)
	}
	if err := r.ender.end(ctx, r.remove(pod)); err != nil {
		return err
	}
	return r.whyStuck()
}

// remove notes that the pod was deleted, and gives the grace in seconds that overrides
// its own; nil: none does.
func (r *record) remove(pod *v1.Pod) (override *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	override = r.orders.remove(pod, r.ending.begun)
	if r.ending.told {
		r.teller.wake() // to be forgotten
	}
	return override
}

// whyStuck is why the last attempt to stop the containers of a pod has failed. The
// error has virtual-kubelet call again, later and later. It is nil for a pod that has
// ended or is about to.
func (r *record) whyStuck() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ending.whyStuck(); err != nil {
		return fmt.Errorf("failed to end pod %s: %w", r.name, err)
	}
	return nil
}
