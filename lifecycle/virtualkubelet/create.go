package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// CreatePod takes a pod and returns at once; its containers are started beside it, so
// that virtual-kubelet can delete a pod whose start takes its time. A pod that runs
// already is kept as it is, with the metadata and spec of this call.
//
// A pod that is being deleted, or whose termination has begun here, is refused with a
// [*RefusedError] that wraps [lifecycle.ErrTerminating]. One whose name a former pod
// still has, by another UID, is taken and starts when that one has ended: the API
// server has it no more, so it is ended as DeletePod ends such a pod.
func (p *Provider) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return refused(pod, lifecycle.ErrTerminating)
	}
	r, former, err := p.take(ctx, pod)
	if err != nil || r == nil {
		return err
	}
	p.spawn(r.name, func() { p.tell(r) })
	p.spawn(r.name, func() { p.start(r, former) })
	if former == nil {
		return nil
	}
	return p.end(ctx, former, p.forced(former))
}

// take enters a pod. It gives its record, nil if the pod is known, and that of the
// former pod of its name, nil if there is none.
func (p *Provider) take(ctx context.Context, pod *v1.Pod) (r, former *record, err error) {
	r = newRecord(ctx, pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch known := p.pods[r.key]; {
	case p.closed:
		return nil, nil, refused(pod, lifecycle.AgentStopping)
	case known != nil && known.terminating:
		return nil, nil, refused(pod, lifecycle.ErrTerminating)
	case known != nil:
		known.pod, known.adopted = r.pod, false
		return nil, nil, nil
	}
	if former = p.names[r.name]; former != nil {
		former.superseded, former.deleted = true, true
		former.wakeLocked()
	}
	r.starting = true
	p.pods[r.key], p.names[r.name] = r, r
	r.wakeLocked()
	return r, former, nil
}

// UpdatePod keeps the metadata and spec of a pod; containers are not changed. A pod
// with a deletionTimestamp is deleted as by [Provider.DeletePod], or hurried if it is
// being deleted. An unknown pod is an error of the kind errdefs.ErrNotFound, unless
// a former pod of its name is known: then it is created.
func (p *Provider) UpdatePod(ctx context.Context, pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return p.DeletePod(ctx, pod)
	}
	p.mu.Lock()
	r, former := p.pods[keyOf(pod)], p.names[nameOf(pod)]
	if r != nil {
		r.pod, r.adopted = pod.DeepCopy(), false
	}
	p.mu.Unlock()
	switch {
	case r != nil:
		return nil
	case former != nil:
		return p.CreatePod(ctx, pod)
	default:
		return notFound(pod.Namespace, pod.Name)
	}
}
