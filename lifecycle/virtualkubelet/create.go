package virtualkubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// CreatePod adds a pod and returns at once. The containers are started in the background,
// so that virtual-kubelet can delete a pod whose start takes long. For a pod that runs
// already, only the metadata and spec are replaced.
//
// A deleted pod, or one whose termination has begun, is refused with an
// errdefs.ErrInvalidInput that wraps [lifecycle.ErrTerminating]; after [Provider.Close]
// it wraps [lifecycle.AgentStopping].
//
// If another pod with the same name but another UID is known, the API server no longer
// has that pod. CreatePod then terminates it as DeletePod does, and starts the new pod
// when it has ended.
//
// CreatePod keeps the values of ctx and ignores its end.
func (p *Provider) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return newRefusedError(pod, lifecycle.ErrTerminating)
	}
	if p.agent.workers.isClosed() {
		return newRefusedError(pod, lifecycle.AgentStopping)
	}
	p.agent.poller.start(ctx)
	r := newRecord(ctx, p.agent, pod)
	r.ending.starting = true
	known, former := p.agent.pods.add(r)
	if known != nil {
		if !known.updateUnlessEnding(pod) {
			return newRefusedError(pod, lifecycle.ErrTerminating)
		}
		return nil
	}
	r.notifier.wake()
	start := &starter{agent: p.agent, r: r, former: former}
	p.agent.workers.spawn(r.name, r.notifier.run)
	p.agent.workers.spawn(r.name, start.run)
	if former == nil {
		return nil
	}
	return former.ender.end(r.ctx, former.supersede())
}

// UpdatePod replaces the metadata and spec of a pod; its containers do not change. If the
// pod has a deletionTimestamp, it calls [Provider.DeletePod]. An unknown pod is an
// errdefs.ErrNotFound, unless an earlier pod with the same name is known: then the pod is
// created.
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
	return newNotFoundError(pod.Namespace, pod.Name)
}

// update replaces the pod's metadata and spec.
func (r *record) update(pod *v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updateLocked(pod)
}

// updateLocked is update for a caller that holds the mutex. A pod whose place has not told its
// spec has containers from now on.
func (r *record) updateLocked(pod *v1.Pod) {
	r.desired.update(pod)
	if len(r.containers.all) > 0 || r.remote() == nil || r.ending.terminating {
		return
	}
	if r.containers = newContainers(&r.desired.pod.Spec); r.remote().place.status != nil {
		r.containers.observe(r.remote().place.status)
	}
	r.notifier.wake()
}

// updateUnlessEnding is update for a pod that is to run. It returns false if the pod's
// termination has begun.
func (r *record) updateUnlessEnding(pod *v1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending.terminating {
		return false
	}
	r.updateLocked(pod)
	return true
}

// supersede marks that a newer pod has the name. It returns the grace period in seconds
// that replaces the pod's own; nil means that none does.
func (r *record) supersede() (override *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.desired.supersede()
	r.notifier.wake()
	return r.desired.forcedGrace()
}
