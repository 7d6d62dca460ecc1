package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GetPod gives a copy of a pod with its status of now; an unknown one is an error of
// the kind errdefs.ErrNotFound. The copy of a pod that is being terminated has an
// annotation more, by which DeletePod knows it again.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	r := p.agent.pods.named(types.NamespacedName{Namespace: namespace, Name: name})
	if r == nil {
		return nil, notFound(namespace, name)
	}
	return r.marked(), nil
}

// GetPodStatus gives a copy of a pod's status of now; that of an unknown pod is an
// error of the kind errdefs.ErrNotFound.
func (p *Provider) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods gives copies of all pods as GetPod does, by name. The error is nil.
func (p *Provider) GetPods(context.Context) ([]*v1.Pod, error) {
	records := p.agent.pods.newest()
	pods := make([]*v1.Pod, 0, len(records))
	for _, r := range records {
		pods = append(pods, r.marked())
	}
	return pods, nil
}

// Pods are copies of those pods that have not ended, by name: what shutdown.Options asks
// for.
func (p *Provider) Pods() []*v1.Pod {
	records := p.agent.pods.newest()
	pods := make([]*v1.Pod, 0, len(records))
	for _, r := range records {
		if r.final() == nil {
			pods = append(pods, r.view())
		}
	}
	return pods
}

// marked is the view of a pod with the mark of one that is being terminated.
func (r *record) marked() *v1.Pod {
	pod := r.view()
	if !r.isDeleting() {
		return pod
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[handedBack] = "true"
	return pod
}
