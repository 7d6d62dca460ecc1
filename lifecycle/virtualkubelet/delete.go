package virtualkubelet

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// DeletePod begins the termination of a pod, or shortens it, and returns at once. It may
// be called any number of times: a pod has one termination, its hooks run once, and its
// deadline only moves earlier (k/k#83916).
//
// The grace period is the pod's deletionGracePeriodSeconds, counted from the call. As in
// the kubelet, deletionTimestamp is not compared with the clock. There are two
// exceptions. The deletion of an adopted pod may be older than this process, so the pod
// has what its deletionTimestamp leaves (graceperiod.LeftOfDeletion). And if
// virtual-kubelet passes a pod back that the API server no longer has, the pod was
// deleted by force: if its deletion was known before, 1 s is left.
//
// When all containers have ended, virtual-kubelet is notified of the final status and the
// provider forgets the pod.
//
// An unknown pod is an errdefs.ErrNotFound. Other errors tell why containers could not be
// stopped, in which case each further call tries again, or wrap [lifecycle.AgentStopping]
// after [Provider.Close], or have the cause of ctx. ctx bounds only the beginning of the
// termination.
func (p *Provider) DeletePod(ctx context.Context, pod *v1.Pod) error {
	r := p.agent.pods.find(pod)
	if r == nil {
		return newNotFoundError(pod.Namespace, pod.Name)
	}
	if err := r.ender.end(ctx, r.remove(pod)); err != nil {
		return err
	}
	return r.whyStuck()
}

// remove marks the pod as deleted. It returns the grace period in seconds that replaces
// the pod's own; nil means that none does.
func (r *record) remove(pod *v1.Pod) (override *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	override = r.desired.remove(pod, r.ending.terminating)
	if r.ending.finalSent {
		r.notifier.wake() // so that it forgets the pod
	}
	return override
}

// whyStuck returns why the last attempt to stop the pod's containers failed.
// virtual-kubelet calls again after an error, with increasing pauses. It is nil if the
// pod has ended or is ending.
func (r *record) whyStuck() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ending.whyStuck(); err != nil {
		return fmt.Errorf("failed to end pod %s: %w", r.name, err)
	}
	return nil
}
