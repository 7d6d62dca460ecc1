package virtualkubelet

import (
	"context"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// handedBack marks the copies of pods that [Provider.GetPod] gives while they are
// being terminated. virtual-kubelet hands such a copy to DeletePod when the API server
// has the pod no more, and finds by the mark that a new pod of the name is another.
const handedBack = "virtualkubelet.kubegrace.dev/terminating"

// DeletePod begins the termination of a pod, or hurries it, and returns at once. It
// may be called again and again, from anywhere: there is one termination, its hooks
// run once, and its deadline only moves earlier (k/k#83916).
//
// The grace is the deletionGracePeriodSeconds of the pod, counted from the call, and
// no clock is asked: the kubelet's rule. Two cases differ. The deletion of a pod
// that was adopted may be older than this agent: it has what its deletionTimestamp
// leaves ([graceperiod.LeftOfDeletion]). And a pod that virtual-kubelet hands back
// because the API server has it no more was deleted by force: if its deletion was
// under way, 1 s is left.
//
// When all containers have ended, virtual-kubelet hears of the final status, and then
// the pod is forgotten. A pod that is not known is an error of the kind
// errdefs.ErrNotFound. Any other error says why containers could not be stopped, each
// call trying once more, or wraps [lifecycle.AgentStopping] after [Provider.Close].
func (p *Provider) DeletePod(ctx context.Context, pod *v1.Pod) error {
	r, override := p.announce(pod)
	if r == nil {
		return notFound(pod.Namespace, pod.Name)
	}
	if err := p.end(ctx, r, override); err != nil {
		return err
	}
	return p.whyStuck(r)
}

// whyStuck is why the last attempt to stop the containers of a pod has failed. The
// error has virtual-kubelet call again, later and later. It is nil for a pod that has
// ended or is about to.
func (p *Provider) whyStuck(r *record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.stuck == nil || r.settling {
		return nil
	}
	return fmt.Errorf("failed to end pod %s: %w", r.name, r.stuck)
}

// forcedLocked is the grace of a pod that the API server has no more: 1 s if its
// deletion was announced, for then it was hurried by force, else nil: its own.
func (r *record) forcedLocked() *int64 {
	if r.announced {
		return ptr.To(graceperiod.MinimumPodSeconds)
	}
	return nil
}

func (p *Provider) forced(r *record) *int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.forcedLocked()
}

// end terminates a pod, unless it has ended and been forgotten meanwhile.
func (p *Provider) end(ctx context.Context, r *record, override *int64) error {
	if err := p.terminate(ctx, r, p.view(r), override); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// announce notes that a pod was deleted, and gives the grace that overrides its own;
// nil: none does.
func (p *Provider) announce(pod *v1.Pod) (r *record, override *int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r = p.pods[keyOf(pod)]; r == nil {
		return nil, nil
	}
	_, marked := pod.Annotations[handedBack]
	back := marked && r.terminating
	r.deleted = true
	if r.told {
		r.wakeLocked() // to be forgotten
	}
	switch {
	case back:
		override = r.forcedLocked()
	case r.adopted:
		override = ptr.To(graceperiod.LeftOfDeletion(pod, time.Now()))
	}
	if !back {
		r.pod = pod.DeepCopy()
		r.announced = r.announced || pod.DeletionTimestamp != nil
	}
	return r, override
}

// terminate begins or joins the termination of a pod; where that has got stuck, its
// containers are asked for again. The pod must not change any more.
func (p *Provider) terminate(ctx context.Context, r *record, pod *v1.Pod, override *int64) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return fmt.Errorf("failed to terminate pod %s: %w", r.name, context.Cause(ctx))
	}
	running, err := p.begin(r)
	if err != nil {
		return err
	}
	t := p.terminator.Terminate(ctx, pod, lifecycle.Request{GracePeriodSeconds: override, Containers: running})
	if t != r.termination {
		r.termination = t
		p.spawn(r.name, func() { p.conclude(r, t) })
	}
	return nil
}

// begin notes that a pod is terminating, before any of its containers can end by
// that, and gives those that run.
func (p *Provider) begin(r *record) ([]lifecycle.Container, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.forgotten:
		return nil, notFound(r.name.Namespace, r.name.Name)
	case p.closed:
		return nil, fmt.Errorf("failed to terminate pod %s: %w", r.name, lifecycle.AgentStopping)
	case !r.terminating:
		r.terminating = true
		close(r.deleting)
	}
	return r.runningLocked(), nil
}

// endItself ends what is left of a pod that is over by itself.
func (p *Provider) endItself(r *record) {
	_ = p.end(r.ctx, r, nil) // it fails when the agent stops: then the pod is left as it is
}
