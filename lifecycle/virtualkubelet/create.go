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
// A pod that is being deleted, or whose termination has begun here, is refused, by an
// error of the kind errdefs.ErrInvalidInput that wraps [lifecycle.ErrTerminating]; after
// [Provider.Close] it wraps [lifecycle.AgentStopping]. A pod whose name a former one
// still has, by another UID, is taken and starts when that one has ended: the API
// server has it no more, so it is ended as DeletePod ends such a pod.
//
// Of ctx the values are kept, not the end.
func (p *Provider) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return refused(pod, lifecycle.ErrTerminating)
	}
	if p.agent.workers.isClosed() {
		return refused(pod, lifecycle.AgentStopping)
	}
	r := newRecord(ctx, p.agent, pod)
	r.ending.starting = true
	known, former := p.agent.pods.enter(r)
	if known != nil {
		if !known.show(pod) {
			return refused(pod, lifecycle.ErrTerminating)
		}
		return nil
	}
	r.teller.wake()
	start := &starter{agent: p.agent, r: r, former: former}
	p.agent.workers.spawn(r.name, r.teller.run)
	p.agent.workers.spawn(r.name, start.run)
	if former == nil {
		return nil
	}
	return former.ender.end(ctx, former.supersede())
}

// UpdatePod keeps the metadata and spec of a pod; containers are not changed. A pod
// with a deletionTimestamp is deleted as by [Provider.DeletePod], or hurried if it is
// being deleted. An unknown pod is an error of the kind errdefs.ErrNotFound, unless
// a former pod of its name is known: then it is created.
func (p *Provider) UpdatePod(ctx context.Context, pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return p.DeletePod(ctx, pod)
	}
	if r := p.agent.pods.find(pod); r != nil {
		r.update(pod)
		return nil
	}
	if p.agent.pods.named(nameOf(pod)) != nil {
		return p.CreatePod(ctx, pod)
	}
	return notFound(pod.Namespace, pod.Name)
}

// update keeps the pod as it was given.
func (r *record) update(pod *v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders.show(pod)
}

// show is update for a pod that is to run. It tells whether it may: its termination has
// not begun.
func (r *record) show(pod *v1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending.begun {
		return false
	}
	r.orders.show(pod)
	return true
}

// supersede notes that a newer pod has the name, and gives the grace in seconds that
// overrides the pod's own; nil: none does.
func (r *record) supersede() (override *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders.supersede()
	r.teller.wake()
	return r.orders.forced()
}
