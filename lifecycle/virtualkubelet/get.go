package virtualkubelet

import (
	"cmp"
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GetPod gives a copy of a pod with its status of now; an unknown one is an error of
// the kind errdefs.ErrNotFound. The copy of a pod that is being terminated has an
// annotation more, by which DeletePod knows it again.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	p.mu.Lock()
	r := p.names[types.NamespacedName{Namespace: namespace, Name: name}]
	p.mu.Unlock()
	if r == nil {
		return nil, notFound(namespace, name)
	}
	return p.marked(r), nil
}

// marked is the view of a pod with the mark of one that is being terminated.
func (p *Provider) marked(r *record) *v1.Pod {
	pod := p.view(r)
	select {
	case <-r.deleting:
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[handedBack] = "true"
	default:
	}
	return pod
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
	return p.list(p.marked, func(*record) bool { return true }), nil
}

// Pods are copies of those pods that have not ended: what [shutdown.Options] asks for.
func (p *Provider) Pods() []*v1.Pod {
	return p.list(p.view, func(r *record) bool { return r.final == nil })
}

// list gives the pods that are meant, by name.
func (p *Provider) list(copyOf func(*record) *v1.Pod, meantLocked func(*record) bool) []*v1.Pod {
	p.mu.Lock()
	var records []*record
	for r := range maps.Values(p.names) {
		if meantLocked(r) {
			records = append(records, r)
		}
	}
	p.mu.Unlock()
	slices.SortFunc(records, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
	})
	pods := make([]*v1.Pod, 0, len(records))
	for _, r := range records {
		pods = append(pods, copyOf(r))
	}
	return pods
}
