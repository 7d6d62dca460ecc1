package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GetPod returns a copy of a pod with its current status. An unknown pod is an
// errdefs.ErrNotFound. The copy of a terminating pod has an additional annotation, by
// which DeletePod recognizes it.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	r := p.agent.pods.named(types.NamespacedName{Namespace: namespace, Name: name})
	if r == nil {
		return nil, newNotFoundError(namespace, name)
	}
	return r.markedView(), nil
}

// GetPodStatus returns a copy of a pod's current status. An unknown pod is an
// errdefs.ErrNotFound.
func (p *Provider) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns copies of all pods as GetPod does, sorted by namespace and name. With a
// [PodRuntime] it waits until that has told which pods it has, because virtual-kubelet starts
// with this call, and deletes those that the API server has no more. The error has the cause of
// ctx, or wraps [lifecycle.AgentStopping] after [Provider.Close].
func (p *Provider) GetPods(ctx context.Context) ([]*v1.Pod, error) {
	p.agent.poller.start(ctx)
	if err := p.agent.poller.await(ctx); err != nil {
		return nil, err
	}
	records := p.agent.pods.newest()
	pods := make([]*v1.Pod, 0, len(records))
	for _, r := range records {
		pods = append(pods, r.markedView())
	}
	return pods, nil
}

// Pods returns copies of the pods that have not ended, sorted by namespace and name. It
// is the Pods of shutdown.Options. A pod is in the list before [Options.Admit] is asked for
// it, so that a shutdown either finds the pod here or refuses it. It is an error if the [PodRuntime] has
// not told yet which pods it has.
func (p *Provider) Pods(ctx context.Context) ([]*v1.Pod, error) {
	if p.agent.poller.start(ctx); !p.agent.poller.isListed() {
		return nil, errNotListed
	}
	records := p.agent.pods.all()
	pods := make([]*v1.Pod, 0, len(records))
	for _, r := range records {
		if r.final() == nil {
			pods = append(pods, r.view())
		}
	}
	return pods, nil
}

// markedView returns the view of a pod, with terminatingAnnotation if it is terminating.
func (r *record) markedView() *v1.Pod {
	pod := r.view()
	if !r.isTerminating() {
		return pod
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[terminatingAnnotation] = "true"
	return pod
}
